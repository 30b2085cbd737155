"""Shared keys: keys with limits that an owner gives to others to ask with (wire reference 2.7)."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, insert, text, update

from app.adapters.database import Transaction
from app.domain.errors import (
    AnonymousOwnsNoKeys,
    BadRequest,
    InvalidApiKey,
    NoSharedKeyModSelected,
    NotOwner,
    WrongCredentials,
)
from app.domain.pricing import KUDOS, kudos
from app.domain.shared_key_terms import DEFAULT_KUDOS, UNLIMITED, SharedKeyTerms, keys_allowed
from app.domain.wire_dates import rfc822
from app.models import ApiKey
from app.services.accounts import SPENT_WITH, Caller, alias_of, authenticate, digest
from app.services.kudos import lock_account
from app.services.runtime import Runtime

DEFAULT_NAME = "shared key"


class SharedKeys:
    """The use cases of shared keys."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database

    def create(self, api_key: str, terms: SharedKeyTerms) -> dict[str, Any]:
        """Make a shared key for the caller and return it.

        Raises AnonymousOwnsNoKeys, WrongCredentials for a key with limits of its own, or BadRequest
        when the caller has as many as it may.
        """
        shared_id = uuid4()
        with self._database.transaction() as transaction:
            caller = _owner(transaction, api_key)
            lock_account(transaction, caller.user_id)
            most = keys_allowed(trusted=caller.trusted, education=caller.education)
            if transaction.execute(_COUNT, {"user_id": caller.user_id}).scalar_one() >= most:
                raise BadRequest(f"This account has {most} shared keys, as many as it may. Delete one first.")
            transaction.execute(
                insert(ApiKey).values(
                    user_id=caller.user_id,
                    key_sha256=digest(str(shared_id)),
                    shared_id=shared_id,
                    name=terms.name(DEFAULT_NAME),
                    kudos_limit=terms.kudos_limit(DEFAULT_KUDOS * KUDOS),
                    expires_at=_expiry(terms),
                    max_text_tokens=terms.max_text_tokens(None),
                )
            )
            return _shown(_find(transaction, shared_id))

    def read(self, shared_id: UUID) -> dict[str, Any]:
        """Return a shared key; its id is the secret, so no other is asked for. Raises InvalidApiKey."""
        with self._database.statements() as transaction:
            return _shown(_find(transaction, shared_id))

    def change(self, api_key: str, shared_id: UUID, terms: SharedKeyTerms) -> dict[str, Any]:
        """Set what the body names, counting kudos from now on, and return the key.

        Raises InvalidApiKey, NotOwner, or NoSharedKeyModSelected when the body sets nothing.
        """
        if not terms.given:
            raise NoSharedKeyModSelected("Name at least one of name, kudos, expiry, max_text_tokens.")
        with self._database.transaction() as transaction:
            row = _own(transaction, api_key, shared_id)
            limit = terms.kudos_limit(None)
            values: dict[str, Any] = {
                "name": terms.name(row.name),
                "kudos_limit": row.kudos_limit if "kudos" not in terms.given else _on_top(limit, row.spent),
                "max_text_tokens": terms.max_text_tokens(row.max_text_tokens),
            }
            if "expiry" in terms.given:
                values["expires_at"] = _expiry(terms)
            transaction.execute(update(ApiKey).where(ApiKey.shared_id == shared_id).values(values))
            return _shown(_find(transaction, shared_id))

    def delete(self, api_key: str, shared_id: UUID) -> None:
        """Make a shared key useless. Raises InvalidApiKey or NotOwner."""
        with self._database.transaction() as transaction:
            _own(transaction, api_key, shared_id)
            transaction.execute(
                update(ApiKey).where(ApiKey.shared_id == shared_id).values(revoked_at=datetime.now(UTC))
            )


def revoke_shared_keys(transaction: Transaction, user_id: int | None = None) -> int:
    """Make every shared key useless, or those of one account; return how many.

    A shared key stands in the database as it is, since its id is the key: who read the database has them all.
    """
    return len(transaction.execute(_REVOKE, {"user_id": user_id}).all())


def _owner(transaction: Transaction, api_key: str) -> Caller:
    caller = authenticate(transaction, api_key)
    if caller.key.is_shared:
        raise InvalidApiKey("A shared key is for asking. Shared keys are managed with their owner's own key.")
    if caller.key.kudos_limit is not None or caller.key.expires_at is not None:
        raise WrongCredentials("This key has limits of its own, so it makes and changes no keys. Use one without.")
    if caller.is_anonymous:
        raise AnonymousOwnsNoKeys("The anonymous account has no shared keys. Register to get an account of your own.")
    return caller


def _own(transaction: Transaction, api_key: str, shared_id: UUID) -> Row[Any]:
    caller = _owner(transaction, api_key)
    row = _find(transaction, shared_id)
    if row.user_id != caller.user_id:
        raise NotOwner("This shared key belongs to another account.", param="sharedkey")
    return row


def _find(transaction: Transaction, shared_id: UUID) -> Row[Any]:
    row = transaction.execute(_READ, {"shared_id": shared_id}).one_or_none()
    if row is None:
        raise InvalidApiKey("No shared key has this id.", param="sharedkey")
    return row


def _on_top(limit: int | None, spent: int) -> int | None:
    return None if limit is None else int(spent) + limit


def _expiry(terms: SharedKeyTerms) -> datetime | None:
    lifetime = terms.lifetime()
    return None if lifetime is None else datetime.now(UTC) + lifetime


def _shown(row: Row[Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": str(row.shared_id),
        "username": alias_of(row.username, row.user_id),
        "name": row.name,
        "kudos": UNLIMITED if row.kudos_limit is None else kudos(max(0, row.kudos_limit - int(row.spent))),
        "utilized": kudos(int(row.spent)),
        "max_image_pixels": UNLIMITED,
        "max_image_steps": UNLIMITED,
        "max_text_tokens": UNLIMITED if row.max_text_tokens is None else row.max_text_tokens,
    }
    if row.expires_at is not None:
        shown["expiry"] = rfc822(row.expires_at)
    return shown


_COUNT = text("SELECT count(*) FROM api_keys WHERE user_id = :user_id AND shared_id IS NOT NULL AND revoked_at IS NULL")

_REVOKE = text(
    """
    UPDATE api_keys SET revoked_at = now()
    WHERE shared_id IS NOT NULL AND revoked_at IS NULL
      AND (CAST(:user_id AS bigint) IS NULL OR user_id = CAST(:user_id AS bigint))
    RETURNING id
    """
)

_READ = text(
    f"""
    SELECT k.shared_id, k.user_id, k.name, k.kudos_limit, k.max_text_tokens, k.expires_at, u.username,
           {SPENT_WITH.format(key="k.id")} AS spent
    FROM api_keys k JOIN users u ON u.id = k.user_id
    WHERE k.shared_id = :shared_id AND k.revoked_at IS NULL
    """  # noqa: S608 - joined from constants
)
