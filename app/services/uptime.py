"""Rewards workers for being there, in windows with a verified job of theirs (wire reference 4.6, details D19)."""

from typing import Any

import structlog
from sqlalchemy import Row, text

from app.domain.earning import UPTIME_WINDOW, uptime_reward
from app.domain.system_accounts import HORDE_ID
from app.models.ledger import Pocket
from app.services.runtime import Runtime

BATCH = 500

log = structlog.get_logger(__name__)


def reward_uptime(runtime: Runtime) -> int:
    """Begin and end windows, and book the rewards of those that are full; return how many were rewarded."""
    values = {"online": runtime.settings.worker_online_seconds}
    rewarded = 0
    with runtime.database.statements() as transaction:
        transaction.execute(_AWAY, values)
        transaction.execute(_BEGIN, values)
        full = transaction.execute(_FULL, {"window": UPTIME_WINDOW, "limit": BATCH}).all()
        for row in full:
            rewarded += bool(transaction.execute(_BOOK, _booking(row)).scalar_one())
    return rewarded


def _booking(row: Row[Any]) -> dict[str, Any]:
    amount = uptime_reward(row.largest_context, row.models) if row.models else 0
    return {
        "worker_id": row.worker_id,
        "begun": row.uptime_from,
        "key": f"uptime:{row.worker_id}:{row.uptime_from.isoformat()}",
        "owner": row.owner_id,
        "pocket": (Pocket.SPENDABLE if row.trusted else Pocket.ESCROW).value,
        "horde": HORDE_ID,
        "amount": amount,
    }


_AWAY = text(
    """
    UPDATE workers SET uptime_from = NULL
    WHERE uptime_from IS NOT NULL AND (maintenance OR paused OR last_seen_at < now() - make_interval(secs => :online))
    """
)

_BEGIN = text(
    """
    UPDATE workers SET uptime_from = now()
    WHERE uptime_from IS NULL AND NOT maintenance AND NOT paused AND deleted_at IS NULL
      AND last_seen_at >= now() - make_interval(secs => :online)
    """
)

_FULL = text(
    """
    SELECT w.id AS worker_id, w.uptime_from, w.user_id AS owner_id, u.trusted, served.largest_context, served.models
    FROM workers w
    JOIN users u ON u.id = w.user_id
    CROSS JOIN LATERAL (
        SELECT max(least(r.context_tokens, r.max_context_length) + g.tokens) AS largest_context,
               array_agg(DISTINCT g.model) AS models
        FROM generations g JOIN horde_requests r ON r.id = g.request_id
        WHERE g.worker_id = w.id AND g.state IN ('verified', 'settled') AND g.ended_at >= w.uptime_from
            AND g.fault IS DISTINCT FROM 'cancelled'
    ) served
    WHERE w.uptime_from < now() - CAST(:window AS interval)
    ORDER BY w.uptime_from
    LIMIT :limit
    """
)

# The window's begin is the guard: whoever moves it on books its reward, and nobody else.
_BOOK = text(
    """
    WITH moved AS (
        UPDATE workers SET uptime_from = now(), uptime_rewards = uptime_rewards + :amount
        WHERE id = :worker_id AND uptime_from = :begun RETURNING id
    ), booked AS (
        INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount)
        SELECT CAST(:key AS text), 'uptime', CAST(:owner AS bigint), CAST(:pocket AS text), CAST(:amount AS bigint)
        FROM moved WHERE :amount > 0
        UNION ALL
        SELECT CAST(:key AS text), 'uptime_paid', CAST(:horde AS bigint), 'spendable', -CAST(:amount AS bigint)
        FROM moved WHERE :amount > 0
        RETURNING 1
    )
    SELECT count(*) FROM booked
    """
)
