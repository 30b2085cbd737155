"""What a worker may post while it writes, and what a post comes to (details D6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from app.domain.errors import BadRequest, InvalidJobId
from app.domain.json_boundary import clean_text

SMALLEST_CAP_BYTES = 64 * 1024
CAP_BYTES_PER_TOKEN = 64

MOST_POSTS = 4096
"""Posts with text that one job may make, so that many tiny ones cannot fill a stream either."""

LARGEST_SEQUENCE = 2**31 - 1


class LeaseState(StrEnum):
    """Where a lease stands; one whose job was submitted is gone."""

    LIVE = "live"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    ENDED = "ended"


class PostOutcome(StrEnum):
    """What a post came to."""

    ACCEPTED = "accepted"
    CANCELLED = "cancelled"
    OUT_OF_STEP = "out_of_step"
    FULL = "full"
    NOT_STREAMED = "not_streamed"
    WRONG_KEY = "wrong_key"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressPost:
    """One post: the text of one step, or a heartbeat, which has no sequence number and no text."""

    generation_id: UUID
    seq: int | None = None
    delta: str = ""
    reasoning_delta: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of text in UTF-8."""
        return len(self.delta.encode()) + len(self.reasoning_delta.encode())


@dataclass(frozen=True, slots=True)
class PostedText:
    """What a generation posted until its cancel."""

    content: str = ""
    reasoning: str = ""

    @property
    def characters(self) -> int:
        """Characters that are priced (details D7)."""
        return len(self.content) + len(self.reasoning)


@dataclass(frozen=True, slots=True)
class Relayed:
    """What a front had passed on to its client of one generation's text when that client left."""

    generation_id: UUID
    text: PostedText


def parse_relayed(body: Mapping[str, object]) -> Relayed | None:
    """What the body of a front's cancel says that it relayed; None when it says nothing.

    Raises BadRequest when it is malformed.
    """
    relayed = body.get("relayed")
    if relayed is None:
        return None
    if not isinstance(relayed, Mapping):
        raise BadRequest("relayed: must be an object.", param="relayed")
    try:
        generation_id = UUID(str(relayed.get("generation_id")))
    except ValueError:
        raise BadRequest("relayed.generation_id: must be a job's id.", param="relayed.generation_id") from None
    content, reasoning = _text(relayed, "content"), _text(relayed, "reasoning_content")
    return Relayed(generation_id, PostedText(content or "", reasoning or ""))


def cap_bytes(max_length: int) -> int:
    """Bytes of text that a job with this `max_length` may post (details D6)."""
    return max(SMALLEST_CAP_BYTES, CAP_BYTES_PER_TOKEN * max_length)


def parse_post(body: Mapping[str, object]) -> ProgressPost:
    """The post in a worker's body, with lone surrogates replaced by U+FFFD.

    A post without text is a heartbeat, and any `seq` of it is ignored. Raises BadRequest or
    InvalidJobId.
    """
    generation_id = parse_job_id(body)
    delta, reasoning = _text(body, "delta"), _text(body, "reasoning_delta")
    if delta is None and reasoning is None:
        return ProgressPost(generation_id=generation_id)
    seq = body.get("seq")
    if isinstance(seq, bool) or not isinstance(seq, int) or not 0 <= seq <= LARGEST_SEQUENCE:
        raise BadRequest("seq: must be a whole number from 0, one more with each post that has text.", param="seq")
    return ProgressPost(generation_id=generation_id, seq=seq, delta=delta or "", reasoning_delta=reasoning or "")


def parse_job_id(body: Mapping[str, object]) -> UUID:
    """The id of a job in a worker's body.

    Raises BadRequest when there is none, and InvalidJobId when it cannot be one.
    """
    try:
        return UUID(str(body["id"]))
    except KeyError:
        raise BadRequest("id: this key is required.", param="id") from None
    except ValueError:
        raise InvalidJobId("No job has this id.", param="id") from None


def _text(body: Mapping[str, object], key: str) -> str | None:
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadRequest(f"{key}: must be a string.", param=key)
    return clean_text(value)
