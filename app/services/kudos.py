"""Grants, balances, and the folding of ledger entries into balances (architecture A6)."""

from uuid import uuid4

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.errors import BadRequest
from app.domain.system_accounts import HORDE_ID
from app.services.runtime import Runtime

FOLD_BATCH = 10_000
LARGEST_GRANT = 10**15


def grant(transaction: Transaction, user_id: int, millikudos: int, business_key: str | None = None) -> str:
    """Give an account kudos from the horde's own account; return the movement's business key.

    The same `business_key` again moves nothing. Raises BadRequest for an amount out of range.
    """
    if not 0 < millikudos <= LARGEST_GRANT:
        raise BadRequest("amount: must be above 0 and at most a thousand billion kudos.", param="amount")
    key = business_key or f"grant:{uuid4()}"
    transaction.execute(_GRANT, {"key": key, "user_id": user_id, "horde": HORDE_ID, "amount": millikudos})
    return key


def balance(transaction: Transaction, user_id: int) -> int:
    """Return an account's millikudos: its folded balance and the entries not yet folded."""
    return int(transaction.execute(_BALANCE, {"user_id": user_id}).scalar_one())


def fold_balances(runtime: Runtime) -> int:
    """Fold new ledger entries into balances; return how many.

    Only this touches balances, so settlements of one busy account never wait for each other.
    """
    folded = 0
    while True:
        with runtime.database.transaction() as transaction:
            if not transaction.execute(
                text("SELECT pg_try_advisory_xact_lock(hashtext('fold_balances'))")
            ).scalar_one():
                return folded
            count = int(transaction.execute(_FOLD, {"limit": FOLD_BATCH}).scalar_one())
        folded += count
        if count < FOLD_BATCH:
            return folded


_ALONE = text("SELECT pg_try_advisory_xact_lock(hashtext('fold_balances'))")

_GRANT = text(
    """
    INSERT INTO ledger_entries (business_key, kind, user_id, amount)
    VALUES (:key, 'grant', :user_id, :amount), (:key, 'issue', :horde, -CAST(:amount AS bigint))
    ON CONFLICT DO NOTHING
    """
)

_BALANCE = text(
    """
    SELECT COALESCE((SELECT amount FROM balances WHERE user_id = :user_id), 0)
         + COALESCE((SELECT sum(amount) FROM ledger_entries WHERE user_id = :user_id AND NOT folded), 0)
    """
)

_FOLD = text(
    """
    WITH taken AS (
        SELECT id FROM ledger_entries WHERE NOT folded ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
    ), marked AS (
        UPDATE ledger_entries e SET folded = true FROM taken WHERE e.id = taken.id RETURNING e.user_id, e.amount
    ), sums AS (
        SELECT user_id, sum(amount) AS amount FROM marked GROUP BY user_id
    ), kept AS (
        INSERT INTO balances (user_id, amount) SELECT user_id, amount FROM sums
        ON CONFLICT (user_id) DO UPDATE SET amount = balances.amount + excluded.amount
    )
    SELECT count(*) FROM marked
    """
)
