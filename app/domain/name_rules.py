"""What accounts and workers may be called (wire reference 1.7 and 4.11)."""

from collections.abc import Iterable

from app.domain.errors import BadRequest, ProfaneBridgeAgent, ProfaneWorkerInfo, ProfaneWorkerName
from app.domain.refused_words import found_words, normal

SHARED_MACHINES = ("colab", "tpu", "google")
"""Words that no worker's name may hold: their machines forbid such use, and get their users banned."""


def parse_words(written: str) -> tuple[str, ...]:
    """Read an operator's list of refused words, comma separated, in the form that is compared."""
    return tuple(word for word in (normal(part) for part in written.split(",")) if word)


def is_profane(name: str, words: Iterable[str]) -> bool:
    """Whether a text holds one of the refused words, as a whole word, underscores parting words too."""
    return bool(found_words(name.replace("_", " "), words))


def check_worker_names(name: str, bridge_agent: str, words: Iterable[str]) -> None:
    """Check what a new worker calls itself.

    Raises BadRequest, ProfaneWorkerName or ProfaneBridgeAgent.
    """
    refused = tuple(words)
    check_worker_texts(name, None, refused)
    if is_profane(bridge_agent, refused):
        raise ProfaneBridgeAgent("'bridge_agent' holds a word that this horde does not show.", param="bridge_agent")


def check_worker_texts(name: str | None, info: str | None, words: Iterable[str]) -> None:
    """Check a worker's new name or info.

    Raises BadRequest, ProfaneWorkerName or ProfaneWorkerInfo.
    """
    refused = tuple(words)
    shared = next((word for word in SHARED_MACHINES if word in (name or "").casefold()), None)
    if shared is not None:
        raise BadRequest(f"'name' must not hold '{shared}'. Choose another name.", param="name")
    if is_profane(name or "", refused):
        raise ProfaneWorkerName("'name' holds a word that this horde does not show. Choose another.", param="name")
    if is_profane(info or "", refused):
        raise ProfaneWorkerInfo("'info' holds a word that this horde does not show.", param="info")
