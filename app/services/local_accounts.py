"""The accounts that a horde on one machine starts with."""

from dataclasses import dataclass

from sqlalchemy import select

from app.adapters.database import Database, Transaction
from app.domain.pricing import KUDOS
from app.models import ApiKey, User
from app.models.account import AccountKind
from app.services.accounts import create_key, create_user, digest
from app.services.kudos import grant
from app.services.passkeys import set_passkey
from config.settings import Settings

LOCAL_KUDOS = 100_000 * KUDOS
"""What each account of a horde on one machine starts with, so that its owner can ask for long replies."""


@dataclass(frozen=True, slots=True)
class LocalKeys:
    """The keys of a horde on one machine, made by its launcher."""

    admin: str
    demo: str
    worker: str
    service_passkey: str


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
        user_id = create_user(transaction, name, kind)
        create_key(transaction, user_id, "local", key)
        grant(transaction, user_id, LOCAL_KUDOS, f"grant:local:{user_id}")
