"""Books verified generations in the ledger, many in one statement (architecture A6)."""

from prometheus_client import Counter
from sqlalchemy import text

from app.domain.system_accounts import HORDE_ID
from app.services.runtime import Runtime
from config.fault_points import FaultPoint, reach

SETTLED = Counter("horde_generations_settled", "Generations booked in the ledger.")


def settle_batch(runtime: Runtime) -> int:
    """Book every verified generation that nobody else is booking; return how many.

    Charge, reward and the horde's fee enter together with the move to `settled`, so a
    generation is booked once however often this runs, and never by half.
    """
    settled = 0
    limit = runtime.settings.settlement_batch
    while True:
        with runtime.database.statements() as transaction:
            count = len(transaction.execute(_SETTLE, {"limit": limit, "horde": HORDE_ID}).all())
        reach(FaultPoint.SETTLEMENT_STORED)
        SETTLED.inc(count)
        settled += count
        if count < limit:
            return settled


# The unique key of the ledger would refuse a second booking; it is not ignored here,
# because a booking without its move to `settled` is a defect that must be seen.
_SETTLE = text(
    """
    WITH due AS (
        SELECT g.id, g.charge, g.reward, r.user_id AS requester_id, w.user_id AS owner_id
        FROM generations g
        JOIN horde_requests r ON r.id = g.request_id
        JOIN workers w ON w.id = g.worker_id
        WHERE g.state = 'verified'
        ORDER BY g.next_dispatch_at
        LIMIT :limit
        FOR UPDATE OF g SKIP LOCKED
    ), booked AS (
        INSERT INTO ledger_entries (business_key, kind, user_id, amount)
        SELECT 'generation:' || id, 'charge', requester_id, -charge FROM due
        UNION ALL
        SELECT 'generation:' || id, 'reward', owner_id, reward FROM due
        UNION ALL
        SELECT 'generation:' || id, 'fee', CAST(:horde AS bigint), charge - reward FROM due
    )
    UPDATE generations g SET state = 'settled', next_dispatch_at = NULL FROM due
    WHERE g.id = due.id
    RETURNING g.id
    """
)
