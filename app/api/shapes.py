"""What the routes answer, in the shapes that existing clients read (wire reference §2 and §3). Keys may be added."""

from typing import Any, Literal

from pydantic import BaseModel, Field

Dates = Field(description="RFC 822 date")


class Refusal(BaseModel):
    """Every failure: a sentence for people, a code for programs."""

    message: str
    rc: str | None = None
    param: str | None = None
    metadata: dict[str, Any] | None = None
    errors: dict[str, str] | None = Field(None, description="A text body's faulty keys; without an rc.")


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


class DocumentText(BaseModel):
    """A document: one of both, by the form that was asked for."""

    html: str = ""
    markdown: str = ""


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


class KudosDetails(BaseModel):
    """Where an account's kudos came from and went."""

    accumulated: float
    gifted: float
    admin: float
    received: float
    donated: float
    recurring: float
    awarded: float
    styled: float


class User(BaseModel):
    """An account. Further keys are for itself and moderators."""

    username: str
    id: int
    kudos: float
    kudos_details: KudosDetails
    records: dict[str, dict[str, int]]
    worker_count: int
    service: bool
    moderator: bool
    trusted: bool
    flagged: bool
    education: bool
    customizer: bool
    vpn: bool
    special: bool
    deleted: bool
    pseudonymous: bool
    account_age: int
    styles: list[str]
    concurrency: int | None = None
    worker_ids: list[str] = []
    sharedkey_ids: list[str] = []
    active_generations: dict[str, list[str]] = {}
    evaluating_kudos: float = 0.0
    worker_invited: int = 0
    public_workers: bool = False
    contact: str | None = None
    suspicious: int = 0
    admin_comment: str | None = None


class UserChanged(BaseModel):
    """What was changed, and nothing else."""

    username: str = ""
    contact: str = ""
    public_workers: bool = False
    concurrency: int = 0
    worker_invited: int = 0
    trusted: bool = False
    flagged: bool = False
    customizer: bool = False
    vpn: bool = False
    education: bool = False
    special: bool = False
    service: bool = False
    moderator: bool = False
    new_suspicion: int = 0
    admin_comment: str = ""
    proxy_passkey: str = Field("", description="A service's new passkey, which is shown once.")


class Transferred(BaseModel):
    """What was given."""

    transferred: float


class SharedKey(BaseModel):
    """A key that others may ask with."""

    id: str
    username: str
    name: str
    kudos: float
    utilized: float
    expiry: str = Field("", description="RFC 822 date; left out when it has none.")
    max_text_tokens: int
    max_image_pixels: int
    max_image_steps: int


class Alive(BaseModel):
    """The process lives."""

    status: Literal["ok"]


class Ready(BaseModel):
    """Which services can be reached."""

    status: Literal["ok", "unavailable"]
    services: dict[str, bool]


class Done(BaseModel):
    """It is done."""

    message: Literal["OK"]


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
