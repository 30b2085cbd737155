"""A worker as clients read it, and what its owner may change (wire reference 2.6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.declaration import Declaration
from app.domain.errors import BadRequest, TooLongWorkerName
from app.domain.pricing import kudos
from app.domain.wire_dates import rfc822

SHORTEST_NAME, LONGEST_NAME = 5, 100
LONGEST_INFO = 1000
LONGEST_MAINTENANCE_MESSAGE = 1000

WORKER_TYPE = "text"
"""The only type there is: the horde serves text."""

WORKER_TYPES = (WORKER_TYPE, "image", "interrogation")
"""Types that a client may ask for; of the others there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """What is known of one worker. Amounts are millikudos."""

    id: str
    name: str
    owner: str
    declaration: Declaration
    online: bool
    maintenance: bool
    paused: bool
    trusted: bool
    flagged: bool
    info: str | None
    tokens_per_second: float | None
    fulfilled: int
    uncompleted: int
    generated: int
    uptime_rewards: int
    uptime_seconds: float
    messages: list[dict[str, Any]] = field(default_factory=list)
    owner_is_public: bool = False
    suspicions: int = 0
    address: str | None = None
    contact: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Who looks: everybody, its owner, or a moderator."""

    owner: bool = False
    moderator: bool = False


def worker_object(worker: WorkerFacts, view: View) -> dict[str, Any]:
    """Return the worker on the wire: numbers are never null, `info` and `owner` are left out where there is none.

    `performance` ends in the words that clients parse. `models` are those that text requests may
    name; the chat model is `chat_model`.
    """
    declared = worker.declaration
    shown = {
        "type": WORKER_TYPE,
        "name": worker.name,
        "id": worker.id,
        "online": worker.online,
        "requests_fulfilled": worker.fulfilled,
        "uncompleted_jobs": worker.uncompleted,
        "kudos_rewards": kudos(worker.generated + worker.uptime_rewards),
        # horde-sdk reads this one as an integer.
        "kudos_details": {"generated": kudos(worker.generated), "uptime": round(kudos(worker.uptime_rewards))},
        "performance": f"{worker.tokens_per_second or 0.0:.1f} tokens per second",
        "threads": declared.threads,
        "uptime": int(worker.uptime_seconds),
        "maintenance_mode": worker.maintenance,
        "nsfw": declared.nsfw,
        "trusted": worker.trusted,
        "flagged": worker.flagged,
        "models": list(declared.models) if declared.prompt_jobs else [],
        "max_length": declared.max_length,
        "max_context_length": declared.max_context_length,
        "bridge_agent": declared.bridge_agent,
        "team": {"name": None, "id": None},
        "messages": [],
    }
    if declared.chat_jobs and declared.model_id:
        shown["chat_model"] = declared.model_id
    if worker.info:
        shown["info"] = worker.info
    if view.owner or view.moderator or worker.owner_is_public:
        shown["owner"] = worker.owner
    if view.owner or view.moderator:
        shown["messages"] = worker.messages
    if view.moderator:
        shown |= {
            "paused": worker.paused,
            "suspicious": worker.suspicions,
            "ipaddr": worker.address,
            "contact": worker.contact,
        }
    return shown


def message_object(message: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a message to workers on the wire; `expiry` is an RFC 822 date."""
    return {
        "id": str(message["id"]),
        "message": message["message"],
        "origin": message["origin"],
        "expiry": rfc822(message["expires_at"]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEdit:
    """What an owner or a moderator wants changed; None leaves a thing as it is."""

    maintenance: bool | None = None
    maintenance_msg: str | None = None
    paused: bool | None = None
    info: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Check the texts. Raises TooLongWorkerName or BadRequest."""
        if self.name is not None and not _is_name(self.name):
            raise TooLongWorkerName(
                f"name: must have {SHORTEST_NAME} to {LONGEST_NAME} printable characters.", param="name"
            )
        for key, text, most in (
            ("info", self.info, LONGEST_INFO),
            ("maintenance_msg", self.maintenance_msg, LONGEST_MAINTENANCE_MESSAGE),
        ):
            if text is not None and len(text) > most:
                raise BadRequest(f"{key}: may have {most} characters.", param=key)

    @property
    def changes_nothing(self) -> bool:
        """Whether there is nothing to change: a message alone belongs to no maintenance."""
        return all(value is None for value in (self.maintenance, self.paused, self.info, self.name))


def _is_name(name: str) -> bool:
    return SHORTEST_NAME <= len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()
