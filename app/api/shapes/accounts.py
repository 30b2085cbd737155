"""Accounts, their kudos and their shared keys."""

from pydantic import BaseModel, Field


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
