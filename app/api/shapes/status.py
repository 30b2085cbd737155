"""The state of the horde, its statistics and its filters."""

from typing import Literal

from pydantic import BaseModel, Field


class Heartbeat(BaseModel):
    """A sign of life."""

    message: Literal["OK", "DOWN"]
    version: str
    queue: int
    threads: int
    active_count: int
    db_connection: bool


class PerformanceFigures(BaseModel):
    """How the horde is doing. What is about images and alchemy is 0."""

    queued_requests: int
    queued_text_requests: int
    queued_megapixelsteps: float
    queued_tokens: float
    queued_forms: int
    worker_count: int
    thread_count: int
    interrogator_count: int
    interrogator_thread_count: int
    text_worker_count: int
    text_thread_count: int
    past_minute_megapixelsteps: float
    past_minute_tokens: int


class ModelStatus(BaseModel):
    """A model that text requests may name."""

    name: str
    type: Literal["text"]
    count: int = Field(description="Threads that serve it.")
    performance: float = Field(description="Tokens a second of one thread.")
    queued: float = Field(description="Tokens that wait.")
    jobs: int
    eta: int = Field(description="Seconds for what waits; 10000 when nobody serves it or was measured.")


class Modes(BaseModel):
    """The modes; `raid_mode` is for moderators."""

    maintenance_mode: bool = False
    invite_only_mode: bool = False
    raid_mode: bool = False


class Counted(BaseModel):
    """Generations delivered, and their tokens by the output estimate."""

    requests: int
    tokens: int


class Totals(BaseModel):
    """What was delivered over rolling spans that end now, and ever."""

    minute: Counted
    hour: Counted
    day: Counted
    month: Counted
    total: Counted


class ModelTotals(BaseModel):
    """Generations delivered by model."""

    day: dict[str, int]
    month: dict[str, int]
    total: dict[str, int]


class FilterShape(BaseModel):
    """A moderation filter."""

    id: int
    regex: str
    filter_type: int
    kind: Literal["block", "replace"]
    replacement: str | None
    description: str | None


class FilterPattern(BaseModel):
    """One pattern for all filters of a type."""

    filter_type: int
    regex: str


class FilterMatches(BaseModel):
    """What a text matches."""

    suspicion: int = Field(description="How many filters would refuse it.")
    matches: list[str]
