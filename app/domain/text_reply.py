"""A text job's reply as existing bridges submit it (wire reference 2.5)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from app.domain.errors import ValidationFailed
from app.domain.json_boundary import clean_text

STATES = ("ok", "censored", "csam")
"""What a delivered text may be; `faulted` hands the job back instead."""

MAX_METADATA = 50
MAX_REFERENCE = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReply:
    """One continuation of a prompt."""

    text: str
    state: str = "ok"
    seed: int = 0
    gen_metadata: list[dict[str, str]] = field(default_factory=list)

    def stored(self) -> dict[str, Any]:
        """The reply as JSON."""
        return asdict(self)

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """A reply from its JSON."""
        return cls(**data)


def parse_text_reply(body: Mapping[str, object]) -> TextReply:
    """The reply in a bridge's submit.

    Raises ValidationFailed with every key that cannot be used.
    """
    text, seed, state = body.get("generation"), body.get("seed", 0), body.get("state", "ok")
    problems = {}
    if not isinstance(text, str):
        problems["generation"] = "Missing required parameter in the JSON body"
    if isinstance(seed, bool) or not isinstance(seed, int):
        problems["seed"] = "is not of type 'integer'"
    if state not in STATES:
        problems["state"] = f"is not one of {', '.join((*STATES, 'faulted'))}"
    metadata, problem = _metadata(body.get("gen_metadata"))
    if problem is not None:
        problems["gen_metadata"] = problem
    if problems or not isinstance(text, str) or not isinstance(seed, int):
        raise ValidationFailed(problems)
    return TextReply(text=clean_text(text), state=str(state), seed=seed, gen_metadata=metadata)


def _metadata(value: object) -> tuple[list[dict[str, str]], str | None]:
    if value is None:
        return [], None
    if not isinstance(value, list) or len(value) > MAX_METADATA:
        return [], f"is not a list of at most {MAX_METADATA} objects"
    found = [_entry(entry) for entry in value]
    known = [entry for entry in found if entry is not None]
    return known, None if len(known) == len(found) else "holds an entry that is not known"


def _entry(value: object) -> dict[str, str] | None:
    if not isinstance(value, Mapping) or (value.get("type"), value.get("value")) != ("censorship", "csam"):
        return None
    reference = value.get("ref")
    if reference is None:
        return {"type": "censorship", "value": "csam"}
    if not isinstance(reference, str) or len(reference) > MAX_REFERENCE:
        return None
    return {"type": "censorship", "value": "csam", "ref": clean_text(reference)}
