"""An account as clients read it: balance, where its kudos came from, what it did (wire reference 2.7)."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.errors import InvalidApiKey, UserNotFound
from app.domain.pricing import kudos
from app.models.account import AccountKind
from app.services.accounts import Role, alias_of, authenticate
from app.services.escrow import escrow_of
from app.services.kudos import BALANCE_OF
from app.services.runtime import Runtime

SHOWN_GENERATIONS = 100

PAGE = 25
"""Accounts of one page (wire reference 2.7)."""

LAST_PAGE = 1000
"""The furthest page: a list is for reading, and what stands before a page is walked past."""


class UserSort(StrEnum):
    """Order of a list of accounts: the richest first, or the oldest."""

    KUDOS = "kudos"
    AGE = "age"


KUDOS_DETAILS = {
    "accumulated": ("charge", "reward", "uptime", "compensation", "floor", "escrow_in"),
    "gifted": ("gift",),
    "admin": ("grant",),
    "received": ("receipt",),
}
"""Which kinds of ledger entries make up which detail; the wire's other details have no source here."""

WITHOUT_SOURCE = ("donated", "recurring", "awarded", "styled")


class ReadUser:
    """The use cases of `find_user` and of an account's page."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database

    def by_key(self, api_key: str) -> dict[str, Any]:
        """Return the account behind a key, as itself sees it; of a shared key its owner's, with the key's name.

        Raises UserNotFound for a key that nobody has.
        """
        with self._database.statements() as transaction:
            try:
                caller = authenticate(transaction, api_key)
            except InvalidApiKey as refusal:
                raise UserNotFound(refusal.message) from None
            found = _read(transaction, caller.user_id, private=not caller.key.is_shared and not caller.is_anonymous)
        if caller.key.is_shared:
            found["username"] += f" (Shared Key: {caller.key.name})"
        return found

    def page(self, number: int, sort: UserSort) -> list[dict[str, Any]]:
        """Return a page of accounts, from 1 on, as everybody sees them; balances rank as of the last fold."""
        values = {"limit": PAGE, "skip": PAGE * (number - 1)}
        with self._database.statements() as transaction:
            ids = list(transaction.execute(_PAGES[sort], values).scalars())
            found = {row.id: _shown(row) for row in transaction.execute(_USERS, {"ids": ids})}
        return [found[user_id] for user_id in ids if user_id in found]

    def by_id(self, user_id: int, api_key: str | None) -> dict[str, Any]:
        """Return an account; with its own or a moderator's key also what is not for everybody.

        Raises UserNotFound, and InvalidApiKey for a key that is no good.
        """
        with self._database.statements() as transaction:
            private = moderates = False
            if api_key is not None:
                caller = authenticate(transaction, api_key)
                own = caller.user_id == user_id and not caller.is_anonymous
                moderates = caller.moderates
                private = moderates or (own and not caller.key.is_shared)
            return _read(transaction, user_id, private=private, moderates=moderates)


def _read(transaction: Transaction, user_id: int, *, private: bool, moderates: bool = False) -> dict[str, Any]:
    row = transaction.execute(_USERS, {"ids": [user_id]}).one_or_none()
    if row is None or row.kind == AccountKind.SYSTEM:
        raise UserNotFound(f"No account has the id {user_id}.")
    shown = _shown(row)
    if private:
        shown |= _private(transaction, row)
    if moderates:
        shown |= {"suspicious": int(row.suspicions), "admin_comment": row.admin_comment}
    return shown


def _shown(row: Row[Any]) -> dict[str, Any]:
    """Return what everybody may know of an account."""
    totals = row.totals or {}
    public = {"worker_ids": [str(worker_id) for worker_id in row.worker_ids]} if row.public_workers else {}
    return (
        public
        | {
            "username": alias_of(row.username, row.id),
            "id": row.id,
            "kudos": kudos(int(row.balance)),
            "kudos_details": _details(totals),
            "records": _records(totals),
            "styles": [],
            "worker_count": len(row.worker_ids),
            "service": row.kind == AccountKind.SERVICE,
            "pseudonymous": row.kind != AccountKind.ANONYMOUS,
            "account_age": int((datetime.now(UTC) - row.created_at).total_seconds()),
        }
        | {role.value: getattr(row, role.value) for role in Role}
    )


def _private(transaction: Transaction, row: Row[Any]) -> dict[str, Any]:
    """Return what only the account itself and moderators may know."""
    return {
        "concurrency": row.concurrency,
        "worker_invited": row.worker_invited,
        "public_workers": row.public_workers,
        "contact": row.contact,
        "worker_ids": [str(worker_id) for worker_id in row.worker_ids],
        "sharedkey_ids": [str(shared_id) for shared_id in row.sharedkey_ids],
        "active_generations": {
            "text": [str(request_id) for request_id in row.open_requests],
            "image": [],
            "alchemy": [],
        },
        "evaluating_kudos": kudos(escrow_of(transaction, row.id)),
    }


def _details(totals: dict[str, dict[str, int]]) -> dict[str, float]:
    details = {
        name: kudos(sum(int(totals[kind]["amount"]) for kind in kinds if kind in totals))
        for name, kinds in KUDOS_DETAILS.items()
    }
    return details | dict.fromkeys(WITHOUT_SOURCE, 0.0)


def _records(totals: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Count what the account asked and served, as of the last fold; of images and styles there are none."""
    nothing = {"tokens": 0, "entries": 0}
    asked, served = totals.get("charge", nothing), totals.get("reward", nothing)
    none = {"image": 0, "text": 0, "interrogation": 0}
    return {
        "usage": {"megapixelsteps": 0, "tokens": int(asked["tokens"])},
        "contribution": {"megapixelsteps": 0, "tokens": int(served["tokens"])},
        "request": none | {"text": int(asked["entries"])},
        "fulfillment": none | {"text": int(served["entries"])},
        "style": none,
    }


_USERS = text(
    f"""
    SELECT u.*, {BALANCE_OF.format(account="u.id")} AS balance,
           ARRAY(SELECT w.id FROM workers w WHERE w.user_id = u.id AND w.deleted_at IS NULL ORDER BY w.created_at)
               AS worker_ids,
           ARRAY(SELECT k.shared_id FROM api_keys k
                 WHERE k.user_id = u.id AND k.shared_id IS NOT NULL AND k.revoked_at IS NULL ORDER BY k.id)
               AS sharedkey_ids,
           ARRAY(SELECT r.id FROM horde_requests r
                 WHERE r.user_id = u.id AND r.state IN ('preparing', 'queued', 'processing') LIMIT {SHOWN_GENERATIONS})
               AS open_requests,
           (SELECT jsonb_object_agg(t.kind, jsonb_build_object(
                'amount', t.amount, 'entries', t.entries, 'tokens', t.tokens))
            FROM kudos_totals t WHERE t.user_id = u.id) AS totals,
           (SELECT count(*) FROM suspicions s WHERE s.user_id = u.id) AS suspicions
    FROM users u WHERE u.id = ANY(CAST(:ids AS bigint[]))
    """  # noqa: S608 - joined from constants
)

# By what was folded: an order over entries that are not yet would have to look at every account.
_PAGES = {
    UserSort.KUDOS: text(
        """
        SELECT u.id FROM balances b JOIN users u ON u.id = b.user_id
        WHERE u.kind <> 'system' AND NOT u.deleted
        ORDER BY b.amount DESC, b.user_id DESC LIMIT :limit OFFSET :skip
        """
    ),
    UserSort.AGE: text(
        "SELECT id FROM users WHERE kind <> 'system' AND NOT deleted ORDER BY id LIMIT :limit OFFSET :skip"
    ),
}
