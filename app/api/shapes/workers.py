"""Workers and the messages to them."""

from typing import Literal

from pydantic import BaseModel, Field

from app.api.shapes.common import Dates


class Team(BaseModel):
    """There are no teams; clients need the object."""

    name: str | None
    id: str | None


class KudosOfWorker(BaseModel):
    """Where a worker's kudos came from."""

    generated: float
    uptime: int


class Message(BaseModel):
    """A message to workers."""

    id: str
    message: str
    origin: str
    expiry: str = Dates


class AddressedMessage(Message):
    """A message with the worker that it is for; null is all workers."""

    worker_id: str | None


class Worker(BaseModel):
    """A worker. `paused` and what follows it are for moderators, `owner` and messages for its owner too."""

    type: Literal["text"]
    name: str
    id: str
    online: bool
    requests_fulfilled: int
    uncompleted_jobs: int
    kudos_rewards: float
    kudos_details: KudosOfWorker
    performance: str = Field(pattern=r"^\d+\.\d tokens per second$")
    threads: int
    uptime: int
    maintenance_mode: bool
    nsfw: bool
    trusted: bool
    flagged: bool
    models: list[str]
    max_length: int
    max_context_length: int
    bridge_agent: str
    team: Team
    messages: list[Message]
    chat_model: str = ""
    info: str = ""
    owner: str = ""
    paused: bool = False
    suspicious: int = 0
    ipaddr: str | None = None
    contact: str | None = None


class WorkerChanged(BaseModel):
    """What was changed, and nothing else."""

    maintenance: bool = False
    maintenance_msg: str = ""
    paused: bool = False
    info: str = ""
    name: str = ""


class WorkerDeleted(BaseModel):
    """Which worker was deleted."""

    deleted_id: str
    deleted_name: str
