"""Accounts and keys: who is calling, and who may call."""

import hashlib
import secrets
import time
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, insert, select, text, update

from app.adapters.database import Database, Transaction
from app.domain.errors import BadRequest, InvalidApiKey, OnlyServiceAccountProxy, UserNotFound
from app.domain.system_accounts import ANONYMOUS_ID
from app.models import ApiKey, User
from app.models.account import AccountKind
from config.settings import Settings

KEY_BYTES = 16
"""A key is 16 random bytes, 22 URL-safe characters (native-api N6)."""

PASSKEY_TRUST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Caller:
    """The account behind a key."""

    user_id: int
    username: str
    kind: AccountKind
    trusted: bool
    balance: int

    @property
    def is_anonymous(self) -> bool:
        """Whether this is the account that needs no registration."""
        return self.user_id == ANONYMOUS_ID


@dataclass(frozen=True, slots=True)
class LocalKeys:
    """The keys of a horde on one machine, made by its launcher."""

    admin: str
    demo: str
    worker: str
    service_passkey: str


def digest(secret: str) -> str:
    """Return what is stored of a key: keys are random, so a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_key() -> str:
    """Make a key."""
    return secrets.token_urlsafe(KEY_BYTES)


_CALLER = text(
    """
    SELECT u.id AS user_id, u.username, u.kind, u.trusted,
           COALESCE(b.amount, 0) + COALESCE((SELECT sum(e.amount) FROM ledger_entries e
                                             WHERE e.user_id = u.id AND NOT e.folded), 0) AS balance
    FROM api_keys k
    JOIN users u ON u.id = k.user_id
    LEFT JOIN balances b ON b.user_id = u.id
    WHERE k.key_sha256 = :digest AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
    """
)


def authenticate(transaction: Transaction, key: str) -> Caller:
    """Return the account that a key speaks for.

    Raises InvalidApiKey, in the same words whether it is unknown, revoked or malformed.
    """
    row = transaction.execute(_CALLER, {"digest": digest(key)}).one_or_none()
    if row is None:
        raise refused_key()
    return Caller(
        user_id=row.user_id,
        username=row.username,
        kind=AccountKind(row.kind),
        trusted=row.trusted,
        balance=int(row.balance),
    )


def refused_key() -> InvalidApiKey:
    """Build the refusal of a key that is no good."""
    return InvalidApiKey("No account has this API key. Check it, or register one; 0000000000 is the anonymous key.")


class Passkeys:
    """Service passkeys that were found good just now, so that a front's calls need no query each."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._good: dict[str, float] = {}

    def check(self, passkey: str) -> None:
        """Accept a service account's passkey (native-api N6, details D18).

        Raises OnlyServiceAccountProxy for any other.
        """
        stored = digest(passkey)
        if self._good.get(stored, 0.0) > time.monotonic():
            return
        with self._database.statements() as transaction:
            found = transaction.execute(
                select(User.passkey_sha256).where(User.passkey_sha256 == stored, User.kind == AccountKind.SERVICE.value)
            ).scalar_one_or_none()
        if found is None or not secrets.compare_digest(found, stored):
            raise OnlyServiceAccountProxy("Only a service account with its passkey may speak for a client's address.")
        self._good = {stored: time.monotonic() + PASSKEY_TRUST_SECONDS}


def create_user(transaction: Transaction, username: str, kind: AccountKind = AccountKind.USER) -> int:
    """Add an account and return its id. Raises BadRequest when the name cannot be used."""
    name = username.strip()
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise BadRequest("username: must have 1 to 100 printable characters.", param="username")
    return int(transaction.execute(insert(User).values(username=name, kind=kind.value).returning(User.id)).scalar_one())


def create_key(transaction: Transaction, user_id: int, name: str, key: str | None = None) -> tuple[int, str]:
    """Give an account a key: (its id, the key). The key can be read here and never again."""
    value = key or new_key()
    key_id = transaction.execute(
        insert(ApiKey).values(user_id=user_id, key_sha256=digest(value), name=name).returning(ApiKey.id)
    ).scalar_one()
    return int(key_id), value


def revoke_key(transaction: Transaction, key_id: int) -> bool:
    """Make a key useless from now on. False when there is no such key or it was revoked before."""
    revoked = transaction.execute(
        update(ApiKey)
        .where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
        .values(revoked_at=func.now())
        .returning(ApiKey.id)
    ).scalar_one_or_none()
    return revoked is not None


def set_passkey(transaction: Transaction, user_id: int, passkey: str) -> None:
    """Let a service account prove itself by this passkey."""
    transaction.execute(update(User).where(User.id == user_id).values(passkey_sha256=digest(passkey)))


@dataclass(frozen=True, slots=True)
class Account:
    """An account as an operator sees it."""

    id: int
    username: str
    kind: str
    trusted: bool
    created_at: datetime

    @property
    def alias(self) -> str:
        """The name on the wire."""
        return f"{self.username}#{self.id}"


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is kept of a key: never the key."""

    id: int
    name: str
    created_at: datetime
    revoked_at: datetime | None


def get_account(transaction: Transaction, user_id: int) -> Account:
    """Return an account. Raises UserNotFound."""
    columns = (User.id, User.username, User.kind, User.trusted, User.created_at)
    row = transaction.execute(select(*columns).where(User.id == user_id)).one_or_none()
    if row is None:
        raise UserNotFound(f"No account has the id {user_id}.")
    return Account(row.id, row.username, row.kind, row.trusted, row.created_at)


def keys_of(transaction: Transaction, user_id: int) -> list[KeyRecord]:
    """Return an account's keys, oldest first."""
    columns = (ApiKey.id, ApiKey.name, ApiKey.created_at, ApiKey.revoked_at)
    rows = transaction.execute(select(*columns).where(ApiKey.user_id == user_id).order_by(ApiKey.id))
    return [KeyRecord(row.id, row.name, row.created_at, row.revoked_at) for row in rows]


def ensure_local_accounts(settings: Settings, keys: LocalKeys) -> None:
    """Give a horde on one machine its accounts; a second call changes nothing."""
    wanted = (
        ("admin", AccountKind.ADMIN, keys.admin),
        ("demo", AccountKind.USER, keys.demo),
        ("worker", AccountKind.USER, keys.worker),
    )
    database = Database(settings, pool_size=1, application="launcher")
    try:
        with database.transaction() as transaction:
            for name, kind, key in wanted:
                _ensure_account(transaction, name, kind, key)
            _ensure_service(transaction, keys.service_passkey)
    finally:
        database.close()


def _ensure_service(transaction: Transaction, passkey: str) -> None:
    known = select(User.id).where(User.passkey_sha256 == digest(passkey))
    if transaction.execute(known).first() is None:
        set_passkey(transaction, create_user(transaction, "front", AccountKind.SERVICE), passkey)


def _ensure_account(transaction: Transaction, name: str, kind: AccountKind, key: str) -> None:
    known = select(ApiKey.id).where(ApiKey.key_sha256 == digest(key))
    if transaction.execute(known).first() is None:
        create_key(transaction, create_user(transaction, name, kind), "local", key)
