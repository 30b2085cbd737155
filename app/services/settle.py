"""Books verified generations in the ledger, many in one statement (architecture A6)."""

from uuid import UUID

import structlog
from prometheus_client import Counter
from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.earning import ESCROW_DIVISOR
from app.domain.system_accounts import HORDE_ID
from app.services.runtime import Runtime
from config.fault_points import FaultPoint, reach

SETTLED = Counter("horde_generations_settled", "Generations booked in the ledger.")

log = structlog.get_logger(__name__)


def settle_batch(runtime: Runtime) -> int:
    """Book every verified generation that nobody else is booking; return how many.

    Charge, reward and the horde's fee enter together with the move to `settled`, so a
    generation is booked once however often this runs, and never by half. Of the reward of
    an owner who is not trusted yet, a part goes into escrow (wire reference 4.7).
    """
    settled = 0
    limit = runtime.settings.settlement_batch
    while True:
        with runtime.database.statements() as transaction:
            booked = transaction.execute(
                _SETTLE, {"limit": limit, "horde": HORDE_ID, "escrow_divisor": ESCROW_DIVISOR}
            ).all()
        count = len(booked)
        if booked:
            log.info("generations.settled", count=count, request_ids=sorted({str(row.request_id) for row in booked}))
        reach(FaultPoint.SETTLEMENT_STORED)
        SETTLED.inc(count)
        settled += count
        if count < limit:
            return settled


def settle_cancelled(transaction: Transaction, generation_id: UUID) -> None:
    """Book one generation that was cancelled, in the transaction that cancelled it (details D7)."""
    transaction.execute(
        _SETTLE_CANCELLED, {"id": generation_id, "horde": HORDE_ID, "escrow_divisor": ESCROW_DIVISOR}
    ).one()
    transaction.after_commit(SETTLED.inc)


# The unique key of the ledger would refuse a second booking; it is not ignored here,
# because a booking without its move to `settled` is a defect that must be seen.
_STATEMENT = """
    WITH due AS (
        SELECT g.id, g.charge, g.reward, g.tokens, r.user_id AS requester_id, r.key_id, w.user_id AS owner_id,
               CASE WHEN u.trusted THEN 0 ELSE g.reward / :escrow_divisor END AS escrow
        FROM generations g
        JOIN horde_requests r ON r.id = g.request_id
        JOIN workers w ON w.id = g.worker_id
        JOIN users u ON u.id = w.user_id
        WHERE {due}
        FOR UPDATE OF g SKIP LOCKED
    ), booked AS (
        INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount, tokens, key_id)
        SELECT 'generation:' || id, 'charge', requester_id, 'spendable', -charge, tokens, key_id FROM due
        UNION ALL
        SELECT 'generation:' || id, 'reward', owner_id, 'spendable', reward - escrow, tokens, NULL FROM due
        UNION ALL
        SELECT 'generation:' || id, 'reward_escrow', owner_id, 'escrow', escrow, 0, NULL FROM due WHERE escrow > 0
        UNION ALL
        SELECT 'generation:' || id, 'fee', CAST(:horde AS bigint), 'spendable', charge - reward, 0, NULL FROM due
    )
    UPDATE generations g SET state = 'settled', next_dispatch_at = NULL FROM due
    WHERE g.id = due.id
    RETURNING g.id, g.request_id
"""

_SETTLE = text(_STATEMENT.format(due="g.state = 'verified' ORDER BY g.next_dispatch_at LIMIT :limit"))
_SETTLE_CANCELLED = text(_STATEMENT.format(due="g.state = 'cancelled' AND g.id = :id"))
