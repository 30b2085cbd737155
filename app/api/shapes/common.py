"""What every route may answer, and what only says that it was done."""

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


class DocumentText(BaseModel):
    """A document: one of both, by the form that was asked for."""

    html: str = ""
    markdown: str = ""
