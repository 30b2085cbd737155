"""What `GET /limits` answers."""

from typing import Literal

from pydantic import BaseModel, Field

from app.api.shapes.common import Dates


class InUse(BaseModel):
    """Generations of the account that wait, and how many may; of the anonymous account, which may for one model."""

    in_use: int | None
    max: int


class KeyTerms(BaseModel):
    """What the key itself may; null where it has no limit."""

    name: str
    shared: bool
    kudos_limit: float | None
    kudos_left: float | None
    expiry: str | None = Dates
    max_tokens: int | None = Field(description="Largest max_tokens that it is good for.")


class Rate(BaseModel):
    """One limit of one route, and what is left of it in the window that runs."""

    route: str
    by: Literal["address", "key"]
    calls: int
    seconds: int
    remaining: int
    reset_at: int = Field(description="Unix time of the window's end.")


class Limits(BaseModel):
    """What the key may do right now."""

    username: str
    kudos: float
    reserved: float = Field(description="Held for requests that are open.")
    concurrency: InUse
    key: KeyTerms
    default_max_tokens: int = Field(description="max_tokens of a chat request that names none.")
    rates: list[Rate]
