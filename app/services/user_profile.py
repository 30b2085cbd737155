"""An account as clients read it: balance, where its kudos came from, what it did (wire reference 2.7)."""

from datetime import UTC, datetime
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

    def by_id(self, user_id: int, api_key: str | None) -> dict[str, Any]:
        """Return an account; with its own or a moderator's key also what is not for everybody.

        Raises UserNotFound, and InvalidApiKey for a key that is no good.
        """
        with self._database.statements() as transaction:
            private = False
            if api_key is not None:
                caller = authenticate(transaction, api_key)
                own = caller.user_id == user_id and not caller.is_anonymous
                private = not caller.key.is_shared and (own or caller.moderator)
            return _read(transaction, user_id, private=private)


def _read(transaction: Transaction, user_id: int, *, private: bool) -> dict[str, Any]:
    row = transaction.execute(_USER, {"id": user_id}).one_or_none()
    if row is None or row.kind == AccountKind.SYSTEM:
        raise UserNotFound(f"No account has the id {user_id}.")
    totals = {total.kind: total for total in transaction.execute(_TOTALS, {"id": user_id})}
    shown = {
        "username": alias_of(row.username, row.id),
        "id": row.id,
        "kudos": kudos(int(row.balance)),
        "kudos_details": _details(totals),
        "records": _records(totals),
        "worker_count": len(row.worker_ids),
        "service": row.kind == AccountKind.SERVICE,
        "pseudonymous": row.kind != AccountKind.ANONYMOUS,
        "account_age": int((datetime.now(UTC) - row.created_at).total_seconds()),
    } | {role.value: getattr(row, role.value) for role in Role}
    if private:
        shown |= {
            "concurrency": row.concurrency,
            "worker_ids": [str(worker_id) for worker_id in row.worker_ids],
            "sharedkey_ids": [str(shared_id) for shared_id in row.sharedkey_ids],
            "active_generations": {
                "text": [str(request_id) for request_id in row.open_requests],
                "image": [],
                "alchemy": [],
            },
            "evaluating_kudos": kudos(escrow_of(transaction, user_id)),
        }
    return shown


def _details(totals: dict[str, Row[Any]]) -> dict[str, float]:
    details = {
        name: kudos(sum(int(totals[kind].amount) for kind in kinds if kind in totals))
        for name, kinds in KUDOS_DETAILS.items()
    }
    return details | dict.fromkeys(WITHOUT_SOURCE, 0.0)


def _records(totals: dict[str, Row[Any]]) -> dict[str, dict[str, int]]:
    """Count what the account asked and served, as of the last fold; of images there are none."""
    asked, served = totals.get("charge"), totals.get("reward")
    none = {"image": 0, "interrogation": 0}
    return {
        "usage": {"megapixelsteps": 0, "tokens": int(asked.tokens) if asked else 0},
        "contribution": {"megapixelsteps": 0, "tokens": int(served.tokens) if served else 0},
        "request": none | {"text": int(asked.entries) if asked else 0},
        "fulfillment": none | {"text": int(served.entries) if served else 0},
    }


_USER = text(
    f"""
    SELECT u.*, {BALANCE_OF.format(account="u.id")} AS balance,
           ARRAY(SELECT w.id FROM workers w WHERE w.user_id = u.id ORDER BY w.created_at) AS worker_ids,
           ARRAY(SELECT k.shared_id FROM api_keys k
                 WHERE k.user_id = u.id AND k.shared_id IS NOT NULL AND k.revoked_at IS NULL ORDER BY k.id)
               AS sharedkey_ids,
           ARRAY(SELECT r.id FROM horde_requests r
                 WHERE r.user_id = u.id AND r.state IN ('preparing', 'queued', 'processing') LIMIT {SHOWN_GENERATIONS})
               AS open_requests
    FROM users u WHERE u.id = :id
    """  # noqa: S608 - joined from constants
)

_TOTALS = text("SELECT kind, amount, entries, tokens FROM kudos_totals WHERE user_id = :id")
