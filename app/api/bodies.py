"""What the routes of workers, modes, filters, messages and reports take; keys that they do not know are ignored."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.domain.json_boundary import clean_text
from app.domain.reports import LONGEST_REASON, ReportKind, ReportState
from app.domain.worker_profile import LONGEST_INFO, LONGEST_MAINTENANCE_MESSAGE
from app.services.filter_routes import KINDS
from app.services.user_profile import LAST_PAGE, UserSort
from app.services.worker_messages import DEFAULT_HOURS, LONGEST_MESSAGE, LONGEST_ORIGIN, MOST_HOURS

Text = Annotated[str, AfterValidator(clean_text)]
"""A string that can be stored: NUL characters and half surrogates become U+FFFD."""

LARGEST_COUNT = 2**31 - 1
Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]


def _is_filter_type(value: int) -> int:
    if value not in KINDS:
        raise ValueError(f"must be one of {', '.join(map(str, sorted(KINDS)))}: 10 blocks, 11 replaces")
    return value


FilterType = Annotated[int, AfterValidator(_is_filter_type), Field(description="10 blocks, 11 replaces.")]


class Body(BaseModel):
    """A JSON body: types are not bent."""

    model_config = ConfigDict(strict=True)


class WorkerChanges(Body):
    """What to change about a worker."""

    maintenance: bool | None = Field(None, description="In maintenance it serves its owner alone.")
    maintenance_msg: Text | None = Field(
        None, max_length=LONGEST_MAINTENANCE_MESSAGE, description="What its pops are told while it is in maintenance."
    )
    paused: bool | None = Field(None, description="Moderators only: it gets no jobs, and is not told.")
    info: Text | None = Field(None, max_length=LONGEST_INFO, description="Shown to everybody; empty removes it.")
    name: Text | None = Field(None, description="5 to 100 printable characters.", examples=["Box One"])


class UserChanges(Body):
    """What to change about an account; the values are checked by `app.domain.user_edit`."""

    username: Text | None = Field(None, description="3 to 30 printable characters.", examples=["Ann Lee"])
    contact: Text | None = Field(None, description="Up to 500 characters, for moderators.")
    public_workers: bool | None = Field(None, description="Everybody may see whose its workers are.")
    generate_proxy_passkey: bool | None = Field(None, description="Services only.")
    concurrency: int | None = Field(None, description="Moderators only, like all that follow: 0 to 500.")
    worker_invited: int | None = Field(None, description="Workers that it is invited to run.")
    trusted: bool | None = None
    flagged: bool | None = None
    customizer: bool | None = None
    vpn: bool | None = None
    education: bool | None = None
    special: bool | None = None
    service: bool | None = None
    reset_suspicion: bool | None = None
    admin_comment: Text | None = Field(None, description="Up to 5000 characters.")
    moderator: bool | None = Field(None, description="Admins only.")


class MessageBody(Body):
    """A message to one worker, or from a moderator to all."""

    worker_id: Annotated[UUID, Field(strict=False)] | None = Field(None, description="Left out: all workers.")
    message: Text = Field(min_length=1, max_length=LONGEST_MESSAGE)
    origin: Text | None = Field(None, min_length=1, max_length=LONGEST_ORIGIN, description="Who it is from.")
    expiry: int = Field(DEFAULT_HOURS, ge=1, le=MOST_HOURS, description="Hours for which pops carry it.")


class ModeChanges(Body):
    """Modes to set."""

    maintenance: bool | None = None
    invite_only: bool | None = None
    raid: bool | None = None


class FilterBody(Body):
    """A filter."""

    regex: Text = Field(min_length=1, description="RE2 syntax; case is ignored.", examples=["forbidden words?"])
    filter_type: FilterType = 10
    replacement: Text | None = Field(None, description="What a filter of type 11 puts in place of what it matches.")
    description: Text | None = Field(None, max_length=255)


class FilterChanges(Body):
    """What to change about a filter."""

    regex: Text | None = Field(None, min_length=1)
    filter_type: FilterType | None = None
    replacement: Text | None = None
    description: Text | None = Field(None, max_length=255)


class PromptBody(Body):
    """A text to hold against the filters."""

    prompt: Text


class ReportBody(Body):
    """A report."""

    kind: Annotated[ReportKind, Field(strict=False)] = Field(
        description="What `target` names: a worker's id, an account, or a request's id or job's id."
    )
    target: Text = Field(min_length=1, max_length=64, examples=["00000000-0000-0000-0000-000000000000"])
    reason: Text = Field(min_length=1, max_length=LONGEST_REASON, description="What happened, for the moderators.")


class ReportClosing(Body):
    """How a report ends."""

    note: Text | None = Field(None, max_length=LONGEST_REASON, description="What was done about it.")


class ReportsQuery(BaseModel):
    """Which reports."""

    state: ReportState = ReportState.OPEN
    page: int = Field(1, ge=1, le=LAST_PAGE)


class FilterQuery(BaseModel):
    """Which filters."""

    filter_type: FilterType | None = None


class WorkersQuery(BaseModel):
    """Which workers."""

    type: Literal["text", "image", "interrogation"] | None = Field(None, description="Only text workers exist.")
    name: Text | None = Field(None, description="Exactly this name, in any case.")


class MessagesQuery(BaseModel):
    """Which messages."""

    worker_id: UUID | None = None


class UsersQuery(BaseModel):
    """Which page, in which order."""

    page: int = Field(1, ge=1, le=LAST_PAGE)
    sort: UserSort = UserSort.KUDOS


class DocumentQuery(BaseModel):
    """In which form."""

    format: Literal["html", "markdown"] = "html"


class ModelsQuery(BaseModel):
    """Which models."""

    type: Literal["text", "image"] = Field("image", description="Of image models there are none.")
    min_count: Count | None = Field(None, description="At least so many threads.")
    max_count: Count | None = Field(None, description="At most so many threads.")
    model_state: Literal["known", "custom", "all"] = Field("all", description="known: in the table of sizes.")
