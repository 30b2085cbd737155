"""Counts what a worker failed, and puts one that fails too often into maintenance (native-api N4, wire reference 4.11).

What the horde's own absence caused is nobody's abort: the sweep leaves a heartbeat, and a gap
between two of them is an outage.
"""

from datetime import datetime
from uuid import UUID

import structlog
from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.modes import Mode
from app.domain.suspicion import Suspected
from app.services.runtime import Runtime
from app.services.suspicions import suspect

ABORTS_AN_HOUR = 20
"""A worker may fail this many jobs in an hour; with one more it is in maintenance."""

ABORTS_IN_A_RAID = 10
"""The same in raid mode, where one more is a suspicion and not yet maintenance (wire reference 4.12)."""

OUTAGE_SECONDS = 30.0
"""A silence of the sweep that is longer than this, and than a few of its periods, is an outage."""

MISSED_SWEEPS = 4

NOT_THE_WORKERS = frozenset({"released", "superseded", "verification_failed"})
"""Failures that say nothing about the worker."""

MAINTENANCE = (
    f"This worker failed more than {ABORTS_AN_HOUR} jobs within an hour. Find out why, then end its maintenance."
)

log = structlog.get_logger()


def count_abort(transaction: Transaction, worker_id: UUID, popped_at: datetime, fault: str) -> None:
    """Count a failed generation against its worker, unless the horde was away in its time."""
    if fault in NOT_THE_WORKERS:
        return
    values = {
        "id": worker_id,
        "popped_at": popped_at,
        "usual": ABORTS_AN_HOUR,
        "raided": ABORTS_IN_A_RAID,
        "raid": Mode.RAID.value,
        "message": MAINTENANCE,
    }
    counted = transaction.execute(_COUNT, values).one()
    if counted.crossed:
        log.warning("worker.aborts", worker_id=str(worker_id), aborts=counted.aborts, maintenance=counted.maintenance)
        suspect(transaction, counted.user_id, Suspected.TOO_MANY_ABORTS, worker_id)


def note_heartbeat(runtime: Runtime) -> bool:
    """Leave the sweep's heartbeat; whether the last one is so long ago that the horde was away."""
    longest = max(OUTAGE_SECONDS, MISSED_SWEEPS * runtime.settings.sweep_seconds)
    with runtime.database.statements() as transaction:
        began_at = transaction.execute(_BEAT, {"name": "sweep", "longest": longest}).scalar_one()
        if began_at is None:
            return False
        transaction.execute(text("DELETE FROM outages WHERE ended_at < now() - interval '2 days'"))
    log.warning("horde.was_away", since=began_at.isoformat())
    return True


# `failed_at` is set in any case: it tells a pop to look for what this worker failed.
_COUNT = text(
    """
    WITH counted AS (
        SELECT w.id, since.this_hour,
               CASE WHEN NOT blame.due THEN w.aborts WHEN since.this_hour THEN w.aborts + 1 ELSE 1 END AS aborts,
               CASE WHEN NOT blame.due OR since.this_hour THEN w.aborts_since ELSE now() END AS aborts_since,
               blame.due AND since.this_hour AND w.aborts = most.aborts AS crossed,
               blame.due AND NOT w.maintenance AND since.this_hour AND w.aborts >= most.aborts AND NOT most.raid
                   AS too_many
        FROM workers w,
            LATERAL (SELECT COALESCE(w.aborts_since > now() - interval '1 hour', false) AS this_hour) since,
            (SELECT NOT EXISTS (SELECT 1 FROM outages o WHERE o.ended_at > :popped_at) AS due) blame,
            (SELECT raid, CASE WHEN raid THEN CAST(:raided AS integer) ELSE :usual END AS aborts
             FROM (SELECT EXISTS (SELECT 1 FROM modes WHERE name = :raid AND is_on) AS raid) mode) most
        WHERE w.id = :id
        FOR UPDATE OF w
    )
    UPDATE workers w SET
        failed_at = now(),
        aborts = counted.aborts,
        aborts_since = counted.aborts_since,
        maintenance = w.maintenance OR counted.too_many,
        maintenance_message = CASE WHEN counted.too_many THEN :message ELSE w.maintenance_message END
    FROM counted
    WHERE w.id = counted.id
    RETURNING w.user_id, w.aborts, w.maintenance, counted.crossed
    """
)

_BEAT = text(
    """
    WITH last AS (
        SELECT max(at) AS at FROM heartbeats WHERE name = :name
    ), beat AS (
        INSERT INTO heartbeats (name, at) VALUES (:name, now())
        ON CONFLICT (name) DO UPDATE SET at = greatest(heartbeats.at, excluded.at)
    ), outage AS (
        INSERT INTO outages (began_at, ended_at)
        SELECT at, now() FROM last WHERE at < now() - make_interval(secs => :longest)
        RETURNING began_at
    )
    SELECT (SELECT began_at FROM outage)
    """
)
