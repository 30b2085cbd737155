"""Service passkeys: by them a front proves that it may speak for a client's address (native-api N6, details D18)."""

import secrets
import time
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.adapters.database import Database, Transaction
from app.domain.errors import NonServiceForbidden, OnlyServiceAccountProxy
from app.services.accounts import alias_of, digest

PASSKEY_BYTES = 24
PASSKEY_TRUST_SECONDS = 10.0
SHORTEST_PASSKEY = 16


class Passkeys:
    """Passkeys that were found good just now, so that a front's calls need no query each."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._good: dict[str, float] = {}

    def check(self, passkey: str) -> None:
        """Accept a service account's passkey, or the one before it until that is retired.

        Raises OnlyServiceAccountProxy for any other.
        """
        stored, now = digest(passkey), time.monotonic()
        if self._good.get(stored, 0.0) > now:
            return
        with self._database.statements() as transaction:
            found = transaction.execute(_FIND, {"digest": stored}).scalar_one_or_none()
        if found is None or not secrets.compare_digest(found, stored):
            raise OnlyServiceAccountProxy("Only a service account with its passkey may speak for a client's address.")
        fresh = {known: until for known, until in self._good.items() if until > now}
        self._good = fresh | {stored: now + PASSKEY_TRUST_SECONDS}


def set_passkey(transaction: Transaction, user_id: int, passkey: str) -> None:
    """Let a service account prove itself by this passkey, and by no other."""
    transaction.execute(_SET, {"user_id": user_id, "digest": digest(passkey)})


def rotate_passkey(transaction: Transaction, user_id: int, overlap_hours: float) -> tuple[str, datetime]:
    """Give a service account a new passkey, and return it with the time until which the old one is good too.

    The new passkey can be read here and never again. A passkey from before an earlier rotation is good no
    more. Raises NonServiceForbidden for an account that has no passkey.
    """
    passkey = secrets.token_urlsafe(PASSKEY_BYTES)
    values = {"user_id": user_id, "digest": digest(passkey), "hours": overlap_hours}
    until = transaction.execute(_ROTATE, values).scalar_one_or_none()
    if until is None:
        raise NonServiceForbidden("Only a service account that has a passkey can have a new one in its place.")
    return passkey, until


def retire_passkey(transaction: Transaction, user_id: int) -> bool:
    """End the overlap of a rotation now. False when no old passkey was good any more."""
    return transaction.execute(_RETIRE, {"user_id": user_id}).scalar_one_or_none() is not None


def list_passkeys(transaction: Transaction) -> list[dict[str, Any]]:
    """Return the service accounts that have a passkey, and until when the one before it is good."""
    return [
        {"id": row.id, "service": alias_of(row.username, row.id), "old_one_good_until": row.until}
        for row in transaction.execute(_LIST)
    ]


_FIND = text(
    """
    SELECT CASE WHEN passkey_sha256 = :digest THEN passkey_sha256 ELSE previous_passkey_sha256 END FROM users
    WHERE kind = 'service' AND (passkey_sha256 = :digest
        OR (previous_passkey_sha256 = :digest AND previous_passkey_until > now()))
    LIMIT 1
    """
)

_SET = text(
    """
    UPDATE users SET passkey_sha256 = :digest, previous_passkey_sha256 = NULL, previous_passkey_until = NULL
    WHERE id = :user_id
    """
)

_ROTATE = text(
    """
    UPDATE users SET passkey_sha256 = :digest, previous_passkey_sha256 = passkey_sha256,
        previous_passkey_until = now() + make_interval(secs => 3600 * :hours)
    WHERE id = :user_id AND kind = 'service' AND passkey_sha256 IS NOT NULL
    RETURNING previous_passkey_until
    """
)

_RETIRE = text(
    """
    WITH old AS (
        SELECT id, previous_passkey_until > now() AS was_good FROM users WHERE id = :user_id FOR UPDATE
    )
    UPDATE users u SET previous_passkey_sha256 = NULL, previous_passkey_until = NULL
    FROM old WHERE u.id = old.id AND old.was_good
    RETURNING u.id
    """
)

_LIST = text(
    """
    SELECT id, username, CASE WHEN previous_passkey_until > now() THEN previous_passkey_until END AS until
    FROM users WHERE kind = 'service' AND passkey_sha256 IS NOT NULL ORDER BY id
    """
)
