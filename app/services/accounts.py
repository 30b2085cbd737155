"""Accounts and keys: who is calling, and who may call."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import func, insert, select, text, update

from app.adapters.database import Transaction
from app.domain.errors import BadRequest, DeletedUser, InvalidApiKey, SharedKeyExpired, UserNotFound
from app.domain.system_accounts import ANONYMOUS_ID
from app.models import ApiKey, User
from app.models.account import AccountKind
from app.services.banned import BAN_COLUMNS, BAN_OF, refuse_banned
from app.services.kudos import BALANCE_OF, open_account

KEY_BYTES = 16
"""A key is 16 random bytes, 22 URL-safe characters (native-api N6)."""

LONGEST_NUMBER = 18
"""Digits of an account's number."""


class Role(StrEnum):
    """What an account may be beside its kind (wire reference 1.4); each is a column of `users`."""

    MODERATOR = "moderator"
    TRUSTED = "trusted"
    FLAGGED = "flagged"
    EDUCATION = "education"
    CUSTOMIZER = "customizer"
    VPN = "vpn"
    SPECIAL = "special"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class CallersKey:
    """The key that a call came with, and what it may do."""

    id: int
    name: str
    shared_id: UUID | None = None
    kudos_limit: int | None = None
    expires_at: datetime | None = None
    spent: int = 0
    max_text_tokens: int | None = None

    @property
    def is_shared(self) -> bool:
        """Whether it was made for others to ask with."""
        return self.shared_id is not None

    @property
    def metered_id(self) -> int | None:
        """Its id where requests must name it: it has a limit, or sees only its own requests."""
        return self.id if self.is_shared or self.kudos_limit is not None else None

    def at_most(self, tokens: int) -> int:
        """Return these tokens, or as many as the key is good for."""
        return tokens if self.max_text_tokens is None else min(tokens, self.max_text_tokens)

    @property
    def is_empty(self) -> bool:
        """Whether everything that it may spend is spent."""
        return self.kudos_limit is not None and self.spent >= self.kudos_limit


@dataclass(frozen=True, slots=True)
class Caller:
    """The account behind a key."""

    user_id: int
    username: str
    kind: AccountKind
    trusted: bool
    moderator: bool
    flagged: bool
    education: bool
    concurrency: int | None
    balance: int
    key: CallersKey

    @property
    def is_anonymous(self) -> bool:
        """Whether this is the account that needs no registration."""
        return self.user_id == ANONYMOUS_ID

    @property
    def moderates(self) -> bool:
        """Whether it may do what moderators do: by its role, or as an admin; never by a shared key."""
        return not self.key.is_shared and (self.moderator or self.kind is AccountKind.ADMIN)


def digest(secret: str) -> str:
    """Return what is stored of a key: keys are random, so a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_key() -> str:
    """Make a key."""
    return secrets.token_urlsafe(KEY_BYTES)


SPENT_WITH = """
    (COALESCE((SELECT s.amount FROM key_spending s WHERE s.key_id = {key}), 0)
     - COALESCE((SELECT sum(e.amount) FROM ledger_entries e WHERE e.key_id = {key} AND NOT e.folded), 0))"""
"""SQL for what was spent with a key: folded, and not folded yet."""

_CALLER = text(
    f"""
    SELECT u.id AS user_id, u.username, u.kind, u.trusted, u.moderator, u.flagged, u.education, u.deleted,
           u.concurrency,
           {BALANCE_OF.format(account="u.id")} AS balance,
           k.id AS key_id, k.name AS key_name, k.shared_id, k.kudos_limit, k.max_text_tokens, k.expires_at,
           CASE WHEN k.kudos_limit IS NULL AND k.shared_id IS NULL THEN 0 ELSE {SPENT_WITH.format(key="k.id")} END
               AS spent,
           {BAN_COLUMNS}
    FROM api_keys k
    JOIN users u ON u.id = k.user_id
    {BAN_OF.format(account="u.id")}
    WHERE k.key_sha256 = :digest AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now() OR k.shared_id IS NOT NULL)
    """  # noqa: S608 - joined from constants
)


def authenticate(transaction: Transaction, key: str) -> Caller:
    """Return the account that a key speaks for.

    Raises InvalidApiKey, in the same words whether it is unknown, revoked or malformed;
    SharedKeyExpired, DeletedUser, and UserBanned.
    """
    row = transaction.execute(_CALLER, {"digest": digest(key)}).one_or_none()
    if row is None:
        raise refused_key()
    if row.deleted:
        raise DeletedUser("This account was deleted.")
    refuse_banned(row)
    if row.expires_at is not None and row.expires_at <= datetime.now(UTC):
        raise SharedKeyExpired("This shared key has expired. Ask its owner for another.")
    return Caller(
        user_id=row.user_id,
        username=row.username,
        kind=AccountKind(row.kind),
        trusted=row.trusted,
        moderator=row.moderator,
        flagged=row.flagged,
        education=row.education,
        concurrency=row.concurrency,
        balance=int(row.balance),
        key=CallersKey(
            id=row.key_id,
            name=row.key_name,
            shared_id=row.shared_id,
            kudos_limit=row.kudos_limit,
            expires_at=row.expires_at,
            spent=int(row.spent),
            max_text_tokens=row.max_text_tokens,
        ),
    )


def refused_key() -> InvalidApiKey:
    """Build the refusal of a key that is no good."""
    return InvalidApiKey("No account has this API key. Check it, or register one; 0000000000 is the anonymous key.")


def create_user(transaction: Transaction, username: str, kind: AccountKind = AccountKind.USER) -> int:
    """Add an account, lifted to its floor, and return its id. Raises BadRequest when the name cannot be used."""
    name = username.strip()
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise BadRequest("username: must have 1 to 100 printable characters.", param="username")
    made = insert(User).values(username=name, kind=kind.value).returning(User.id)
    user_id = int(transaction.execute(made).scalar_one())
    open_account(transaction, user_id)
    return user_id


def create_key(
    transaction: Transaction,
    user_id: int,
    name: str,
    key: str | None = None,
    *,
    expires_at: datetime | None = None,
    kudos_limit: int | None = None,
) -> tuple[int, str]:
    """Give an account a key: (its id, the key). The key can be read here and never again.

    `kudos_limit` is in millikudos, over the key's whole life.
    """
    value = key or new_key()
    made = insert(ApiKey).values(
        user_id=user_id, key_sha256=digest(value), name=name, expires_at=expires_at, kudos_limit=kudos_limit
    )
    return int(transaction.execute(made.returning(ApiKey.id)).scalar_one()), value


def revoke_key(transaction: Transaction, key_id: int) -> bool:
    """Make a key useless from now on. False when there is no such key or it was revoked before."""
    revoked = transaction.execute(
        update(ApiKey)
        .where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
        .values(revoked_at=func.now())
        .returning(ApiKey.id)
    ).scalar_one_or_none()
    return revoked is not None


def set_role(transaction: Transaction, user_id: int, role: Role, *, held: bool) -> None:
    """Give an account a role or take it."""
    transaction.execute(update(User).where(User.id == user_id).values({role.value: held}))


def set_concurrency(transaction: Transaction, user_id: int, limit: int | None) -> None:
    """Let an account have this many requests waiting; None returns it to the limit of its kind."""
    transaction.execute(update(User).where(User.id == user_id).values(concurrency=limit))


def alias_of(username: str, user_id: int) -> str:
    """Return an account's name on the wire (wire reference 1.4)."""
    return f"{username}#{user_id}"


@dataclass(frozen=True, slots=True)
class Account:
    """An account as an operator sees it."""

    id: int
    username: str
    kind: str
    roles: tuple[str, ...]
    concurrency: int | None
    created_at: datetime
    erased_at: datetime | None = None

    @property
    def alias(self) -> str:
        """The name on the wire."""
        return alias_of(self.username, self.id)


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is kept of a key: never the key."""

    id: int
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    kudos_limit: int | None
    is_shared: bool


def get_account(transaction: Transaction, user_id: int) -> Account:
    """Return an account. Raises UserNotFound."""
    row = transaction.execute(select(*User.__table__.columns).where(User.id == user_id)).one_or_none()
    if row is None:
        raise UserNotFound(f"No account has the id {user_id}.")
    roles = tuple(role.value for role in Role if getattr(row, role.value))
    return Account(row.id, row.username, row.kind, roles, row.concurrency, row.created_at, row.erased_at)


def find_account(transaction: Transaction, named: str) -> Account:
    """Return the account that an operator names: `Name#number`, or the number alone.

    One that was erased has no name any more, so any will do. Raises UserNotFound, also when the
    account of this number has another name.
    """
    name, mark, number = named.rpartition("#")
    if not (number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER):
        raise UserNotFound(f"'{named}' names no account. Write Name#number, or the number alone.")
    account = get_account(transaction, int(number))
    if mark and name != account.username and account.erased_at is None:
        raise UserNotFound(f"Account {number} is {account.alias}, not {named}.")
    return account


def keys_of(transaction: Transaction, user_id: int) -> list[KeyRecord]:
    """Return an account's keys, oldest first."""
    rows = transaction.execute(select(*ApiKey.__table__.columns).where(ApiKey.user_id == user_id).order_by(ApiKey.id))
    return [
        KeyRecord(
            id=row.id,
            name=row.name,
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
            kudos_limit=row.kudos_limit,
            is_shared=row.shared_id is not None,
        )
        for row in rows
    ]
