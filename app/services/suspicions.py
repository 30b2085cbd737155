"""Notes what makes accounts and workers suspicious, and pauses a worker after too much of it (wire reference 4.11)."""

from uuid import UUID

import structlog
from prometheus_client import Counter
from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.suspicion import SUSPICIOUS_FROM, Suspected, is_implausible
from app.services.runtime import Runtime

BATCH = 500
SLOWEST_THAT_MATTERS = 30.0
"""Tokens per second that are believed of any model."""

SUSPICIONS = Counter("horde_suspicions", "Occasions that made an account or a worker suspicious.", ["reason"])

log = structlog.get_logger(__name__)

IS_SUSPICIOUS = f"""
    ((SELECT count(*) FROM (SELECT 1 FROM suspicions s WHERE s.user_id = {{account}} LIMIT {SUSPICIOUS_FROM}) seen)
     = {SUSPICIOUS_FROM})"""  # noqa: S608 - joined from constants
"""SQL for whether an account is suspicious."""


def suspect(transaction: Transaction, user_id: int, reason: Suspected, worker_id: UUID | None = None) -> None:
    """Note one occasion; a worker with too many is paused, until a moderator ends that."""
    values = {"user_id": user_id, "worker_id": worker_id, "reason": reason.value, "from": SUSPICIOUS_FROM}
    paused = transaction.execute(_SUSPECT, values).first() is not None
    SUSPICIONS.labels(reason.value).inc()
    log.warning("account.suspected", user_id=user_id, worker_id=str(worker_id), reason=reason.value, paused=paused)


def suspect_speeds(runtime: Runtime) -> int:
    """Note workers of untrusted owners whose measured speed nobody can believe, once an hour each; return how many."""
    suspected = 0
    with runtime.database.statements() as transaction:
        fast = transaction.execute(_FAST, {"from": SLOWEST_THAT_MATTERS, "limit": BATCH}).all()
        for row in fast:
            if is_implausible(row.model, row.tokens_per_second):
                suspect(transaction, row.user_id, Suspected.UNREASONABLY_FAST, row.worker_id)
                suspected += 1
    return suspected


def forget_suspicions(transaction: Transaction, user_id: int) -> None:
    """Clear an account of everything that it was suspected of; its workers stay paused until somebody ends that."""
    transaction.execute(text("DELETE FROM suspicions WHERE user_id = :user_id"), {"user_id": user_id})


_SUSPECT = text(
    """
    WITH noted AS (
        INSERT INTO suspicions (user_id, worker_id, reason)
        VALUES (:user_id, CAST(:worker_id AS uuid), :reason)
        RETURNING worker_id
    )
    UPDATE workers w SET paused = true FROM noted
    WHERE w.id = noted.worker_id AND NOT w.paused
      AND (SELECT count(*) FROM suspicions s WHERE s.worker_id = w.id) + 1 >= :from
    RETURNING w.id
    """
)

# A speed is a mean over samples: a single short reply says little.
_FAST = text(
    """
    SELECT w.id AS worker_id, w.user_id, s.model, s.tokens_per_second
    FROM worker_speeds s
    JOIN workers w ON w.id = s.worker_id
    JOIN users u ON u.id = w.user_id
    WHERE s.tokens_per_second > :from AND s.samples >= 5 AND s.measured_at > now() - interval '1 minute'
      AND NOT u.trusted
      AND NOT EXISTS (
          SELECT 1 FROM suspicions p
          WHERE p.worker_id = w.id AND p.reason = 'unreasonably_fast' AND p.created_at > now() - interval '1 hour')
    ORDER BY s.worker_id
    LIMIT :limit
    """
)
