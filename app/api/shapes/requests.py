"""Requests and jobs."""

from typing import Any, Literal

from pydantic import BaseModel

from app.api.shapes.workers import Message


class Quote(BaseModel):
    """The most that the request could cost."""

    kudos: float


class TextAccepted(BaseModel):
    """A text request was taken. `message` is there only when nobody online could take it."""

    id: str
    kudos: int
    message: str = ""


class TextGeneration(BaseModel):
    """One finished generation of a text request."""

    text: str
    seed: int
    gen_metadata: list[dict[str, Any]]
    worker_id: str
    worker_name: str
    model: str
    state: Literal["ok", "censored", "csam"]


class TextStatus(BaseModel):
    """A text request's status: every key always there, every number whole."""

    generations: list[TextGeneration]
    finished: int
    processing: int
    restarted: int
    waiting: int
    done: bool
    faulted: bool
    wait_time: int
    queue_position: int
    kudos: int
    is_possible: bool


class ChatStatus(BaseModel):
    """A chat request's status."""

    id: str
    state: str
    done: bool
    faulted: bool
    waiting: int
    processing: int
    finished: int
    restarted: int
    queue_position: int
    wait_time: int
    queue_info_at: float | None
    is_possible: bool
    eligible_workers: int
    eligible_threads: int
    declaration_gap: dict[str, Any] | None
    limits_gap: dict[str, Any] | None
    fault: dict[str, Any] | None
    kudos: float
    charge_basis: str
    generations: list[dict[str, Any]]


class ChatAccepted(BaseModel):
    """A chat request was taken, with the status that a read would give."""

    id: str
    kudos: float
    status: ChatStatus
    warnings: list[str] = []


class ChatModel(BaseModel):
    """A chat model that is online."""

    name: str
    workers: int
    threads: int
    max_length: int | None
    max_context_length: int | None
    features: list[str]


class Popped(BaseModel):
    """A job, or with a null id that there is none; every key is always there."""

    id: str | None
    ids: list[str]
    is_chat: bool
    payload: dict[str, Any]
    model: str | None
    ttl: int | None
    skipped: dict[str, int]
    worker_id: str
    softprompt: None
    messages: list[Message]
    extra_source_images: None
    declaration_warnings: list[str]


class Posted(BaseModel):
    """Where a job stands after a post."""

    cancelled: bool
    next_seq: int


class LeaseRestored(BaseModel):
    """The lease as it stands again."""

    stream: bool
    next_seq: int


class Rewarded(BaseModel):
    """What the reply earned."""

    reward: float


class Submitted(BaseModel):
    """The reply is stored, and its verdict is still to come: submit it again to learn it."""

    state: Literal["submitted"]
