"""What the routes of reports answer."""

from typing import Literal

from pydantic import BaseModel, Field

from app.api.shapes.common import Dates


class ReportMade(BaseModel):
    """The number of a report."""

    id: int


class Report(BaseModel):
    """A report, as moderators read it."""

    id: int
    kind: Literal["worker", "requester", "request"]
    about: str = Field(description="The account that it is about.")
    worker: str | None
    worker_id: str | None
    request_id: str | None
    reporter: str
    reason: str
    created_at: str = Dates
    closed_at: str | None = Dates
    note: str | None = Field(description="What was done about it.")
