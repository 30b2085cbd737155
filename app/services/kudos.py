"""Grants, balances, and the folding of ledger entries into balances (architecture A6)."""

from uuid import uuid4

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.admission_rules import ANONYMOUS_FLOOR, REGISTERED_FLOOR
from app.domain.errors import BadRequest
from app.domain.system_accounts import ANONYMOUS_ID, FLOOR_ID, HORDE_ID
from app.services.runtime import Runtime
from config.fault_points import FaultPoint, reach

FOLD_BATCH = 10_000
LARGEST_AMOUNT = 10**15
"""A thousand billion kudos, in millikudos: no single movement is larger."""

BALANCE_OF = """
    (COALESCE((SELECT b.amount FROM balances b WHERE b.user_id = {account}), 0)
     + COALESCE((SELECT sum(e.amount) FROM ledger_entries e
                 WHERE e.user_id = {account} AND NOT e.folded AND e.pocket = 'spendable'), 0))"""
"""SQL for what an account may spend: its folded balance and the entries not yet folded."""


def grant(transaction: Transaction, user_id: int, millikudos: int, business_key: str | None = None) -> str:
    """Give an account kudos from the horde's own account; return the movement's business key.

    The same `business_key` again moves nothing. Raises BadRequest for an amount out of range,
    and for the horde's own account.
    """
    if user_id == HORDE_ID:
        raise BadRequest("user_id: this is the horde's own account, which grants come from.", param="user_id")
    if not 0 < millikudos <= LARGEST_AMOUNT:
        raise BadRequest("amount: must be above 0 and at most a thousand billion kudos.", param="amount")
    key = business_key or f"grant:{uuid4()}"
    transaction.execute(_GRANT, {"key": key, "user_id": user_id, "horde": HORDE_ID, "amount": millikudos})
    return key


def balance(transaction: Transaction, user_id: int) -> int:
    """Return the millikudos that an account may spend."""
    return int(transaction.execute(_BALANCE, {"user_id": user_id}).scalar_one())


def open_account(transaction: Transaction, user_id: int) -> None:
    """Lift a new account to its floor (wire reference 4.7)."""
    transaction.execute(_OPEN, {"user_id": user_id, "floor_account": FLOOR_ID, "floor": REGISTERED_FLOOR})


def lock_account(transaction: Transaction, user_id: int) -> None:
    """Keep everything else waiting that would lower this account's kudos by a decision on its balance.

    Settlement does not take this lock: it decides nothing. The submit takes the same one in its own statement.
    """
    transaction.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended('account', CAST(:user_id AS bigint)))"),
        {"user_id": user_id},
    )


def fold_balances(runtime: Runtime) -> int:
    """Fold new ledger entries into balances, and lift who fell below its floor; return how many were folded.

    Only this touches balances, so settlements of one busy account never wait for each other.
    """
    folded = 0
    while True:
        with runtime.database.transaction() as transaction:
            if not transaction.execute(_ALONE).scalar_one():
                return folded
            taken = transaction.execute(_FOLD, {"limit": FOLD_BATCH}).one()
            if taken.entries:
                transaction.execute(_LIFT, _FLOORS | {"accounts": taken.accounts})
        reach(FaultPoint.BALANCES_FOLDED)
        folded += int(taken.entries)
        if taken.entries < FOLD_BATCH:
            return folded


_FLOORS = {
    "anonymous": ANONYMOUS_ID,
    "floor_account": FLOOR_ID,
    "anonymous_floor": ANONYMOUS_FLOOR,
    "registered_floor": REGISTERED_FLOOR,
}

_ALONE = text("SELECT pg_try_advisory_xact_lock(hashtext('fold_balances'))")

_GRANT = text(
    """
    INSERT INTO ledger_entries (business_key, kind, user_id, amount)
    VALUES (:key, 'grant', :user_id, :amount), (:key, 'issue', :horde, -CAST(:amount AS bigint))
    ON CONFLICT DO NOTHING
    """
)

_BALANCE = text(f"SELECT {BALANCE_OF.format(account=':user_id')}")

_OPEN = text(
    """
    INSERT INTO ledger_entries (business_key, kind, user_id, amount)
    VALUES ('floor:opening:' || :user_id, 'floor', :user_id, :floor),
           ('floor:opening:' || :user_id, 'floor_paid', :floor_account, -CAST(:floor AS bigint))
    """
)

_FOLD = text(
    """
    WITH taken AS (
        SELECT id FROM ledger_entries WHERE NOT folded ORDER BY user_id LIMIT :limit FOR UPDATE SKIP LOCKED
    ), marked AS (
        UPDATE ledger_entries e SET folded = true WHERE e.id = ANY(ARRAY(SELECT id FROM taken))
        RETURNING e.user_id, e.kind, e.pocket, e.key_id, e.amount, e.tokens
    ), kept AS (
        INSERT INTO balances (user_id, amount, escrow, held)
        SELECT user_id, COALESCE(sum(amount) FILTER (WHERE pocket = 'spendable'), 0),
            COALESCE(sum(amount) FILTER (WHERE pocket = 'escrow'), 0),
            COALESCE(sum(amount) FILTER (WHERE pocket = 'held'), 0)
        FROM marked GROUP BY user_id
        ON CONFLICT (user_id) DO UPDATE SET amount = balances.amount + excluded.amount,
            escrow = balances.escrow + excluded.escrow, held = balances.held + excluded.held
    ), spent AS (
        INSERT INTO key_spending (key_id, amount)
        SELECT key_id, -sum(amount) FROM marked WHERE key_id IS NOT NULL GROUP BY key_id
        ON CONFLICT (key_id) DO UPDATE SET amount = key_spending.amount + excluded.amount
    ), totals AS (
        INSERT INTO kudos_totals (user_id, kind, amount, entries, tokens)
        SELECT user_id, kind, sum(amount), count(*), sum(tokens) FROM marked GROUP BY user_id, kind
        ON CONFLICT (user_id, kind) DO UPDATE SET amount = kudos_totals.amount + excluded.amount,
            entries = kudos_totals.entries + excluded.entries, tokens = kudos_totals.tokens + excluded.tokens
    )
    SELECT count(*) AS entries, array_agg(DISTINCT user_id) AS accounts FROM marked
    """
)

# What is held still belongs to the account: else a hold would be paid twice, by the
# floor now and by its release later. What is not folded yet counts, an earlier lift above all.
_LIFT = text(
    """
    WITH unfolded AS MATERIALIZED (
        SELECT user_id, sum(amount) AS amount FROM ledger_entries
        WHERE user_id = ANY(CAST(:accounts AS bigint[])) AND NOT folded AND pocket IN ('spendable', 'held')
        GROUP BY user_id
    ), standing AS (
        SELECT u.id AS user_id, b.amount + b.held + COALESCE(e.amount, 0) AS amount,
               CASE WHEN u.id = :anonymous THEN CAST(:anonymous_floor AS bigint)
                    ELSE CAST(:registered_floor AS bigint) END AS floor
        FROM users u JOIN balances b ON b.user_id = u.id LEFT JOIN unfolded e ON e.user_id = u.id
        WHERE u.id = ANY(CAST(:accounts AS bigint[])) AND u.kind <> 'system'
          AND b.amount + b.held < CAST(:registered_floor AS bigint)
    ), low AS (
        SELECT user_id, floor - amount AS gap, 'floor:' || gen_random_uuid() AS business_key
        FROM standing WHERE amount < floor
    )
    INSERT INTO ledger_entries (business_key, kind, user_id, amount)
    SELECT business_key, 'floor', user_id, gap FROM low
    UNION ALL
    SELECT business_key, 'floor_paid', CAST(:floor_account AS bigint), -gap FROM low
    """
)
