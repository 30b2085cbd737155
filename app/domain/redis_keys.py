"""Names of everything the horde keeps in Redis, and the shape of its signals (details D6, D13, D16).

Signals are hints: a lost one delays and changes nothing.
"""

from dataclasses import dataclass
from enum import StrEnum

import orjson

QUEUE_CHANNEL = "horde:queue"
"""Rings when a request enters the queue; the payload is a `QueueSignal`."""


QUEUE_FIGURES = "horde:queue:figures"
"""The queue's figures by class, written by the refresh."""

QUEUE_REFRESH_REST = "horde:queue:rest"
"""There while the refresh rests after a count."""

HISTORY = "horde:history"
"""Sorted set of one look at the horde a minute, by the minute; of an hour."""

HEARTBEATS = "horde:heartbeats"
"""Sorted set of the running jobs whose workers post progress, by the time of the last post in milliseconds."""

HEARTBEATS_WATCH = "horde:heartbeats:watch"
"""Hash that says since when posts could be heard without a break: by the web processes, and by the sweep."""


WEB_HEARTBEAT = "horde:web"
"""There while a process of the native API is."""


class ChatEvent(StrEnum):
    """What happened to a request."""

    QUEUED = "queued"
    PROGRESS = "progress"
    GENERATION = "generation"
    DONE = "done"


def chat_channel(request_id: str) -> str:
    """Channel that rings when something happened to this request."""
    return f"horde:chat:{request_id}"


def lease_key(generation_id: str) -> str:
    """Hash that lets one generation's worker post progress (details D6)."""
    return f"horde:lease:{generation_id}"


def progress_key(request_id: str) -> str:
    """Retained stream of what the workers of a request posted (details D6)."""
    return f"horde:chat:stream:{request_id}"


def verdict_key(generation_id: str) -> str:
    """List on which a worker's submit waits for its verdict."""
    return f"horde:verdict:{generation_id}"


def rate_key(limit: str, source: str, window: int) -> str:
    """Counter of one source's calls within one window of a limit."""
    return f"horde:rate:{limit}:{source}:{window}"


TIMEOUTS = "horde:timeouts"
"""Addresses that are kept out, each with the second in which that ends."""


def suspicion_key(source: str) -> str:
    """Counter of an address's suspicions of the last day."""
    return f"horde:suspicion:{source}"


def addresses_key(user_id: int) -> str:
    """Addresses from which an account's workers came within the hour."""
    return f"horde:addresses:{user_id}"


def chat_event(event: ChatEvent) -> bytes:
    """Payload of a request's signal."""
    return orjson.dumps({"event": event.value})


@dataclass(frozen=True, slots=True)
class QueueSignal:
    """A request of this requirement class became poppable."""

    class_id: int
    requirements: dict[str, object]

    def encode(self) -> bytes:
        """The payload on the wire."""
        return orjson.dumps({"class": self.class_id, "requirements": self.requirements})

    @classmethod
    def decode(cls, payload: bytes | str) -> "QueueSignal":
        """Read a payload.

        Raises ValueError when it is not one.
        """
        data = orjson.loads(payload)
        if not isinstance(data, dict) or not isinstance(data.get("requirements"), dict):
            raise ValueError("not a queue signal")
        return cls(class_id=int(data["class"]), requirements=data["requirements"])
