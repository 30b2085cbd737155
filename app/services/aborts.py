"""Counts what a worker failed, and puts one that fails too often into maintenance (native-api N4, wire reference 4.11).

What the horde's own absence caused is nobody's abort. Each sweep writes down which of the parts
that a worker needs are there: itself, and with it PostgreSQL; the native API, whose processes say
so on Redis; a front, which is heard by its subscription there. A gap between two such notes is an
outage, and so is one that goes on. A failure of a job that ran into an outage is not counted,
nor one while a part is missing by the last note: whether that becomes an outage is not yet known.
"""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import structlog
from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.modes import Mode
from app.domain.redis_keys import QUEUE_CHANNEL, WEB_HEARTBEAT
from app.domain.suspicion import Suspected
from app.services.runtime import Runtime
from app.services.suspicions import suspect

ABORTS_AN_HOUR = 20
"""A worker may fail this many jobs in an hour; with one more it is in maintenance."""

ABORTS_IN_A_RAID = 10
"""The same in raid mode, where one more is a suspicion and not yet maintenance (wire reference 4.12)."""

OUTAGE_SECONDS = 15.0
"""A part's silence that is longer than this, and than a few periods of the sweep, is an outage."""

MISSED_SWEEPS = 3

BEAT_SECONDS = 2.0
"""How often a process of the native API says that it is there, and three times as long it counts for."""


class Part(StrEnum):
    """A part of the horde that a worker needs to deliver its job; each has a row of `heartbeats`."""

    SWEEP = "sweep"
    WEB = "web"
    FRONT = "front"


_EVERY_PART = [part.value for part in Part]

NOT_THE_WORKERS = frozenset({"released", "request_expired", "superseded", "verification_failed"})
"""Failures that say nothing about the worker."""

MAINTENANCE = (
    f"This worker failed more than {ABORTS_AN_HOUR} jobs within an hour. Find out why, then end its maintenance."
)

log = structlog.get_logger(__name__)


def count_abort(runtime: Runtime, transaction: Transaction, worker_id: UUID, popped_at: datetime, fault: str) -> None:
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
        "longest": _longest_silence(runtime),
        "parts": _EVERY_PART,
        "sweep": Part.SWEEP.value,
    }
    counted = transaction.execute(_COUNT, values).one()
    if counted.crossed:
        log.warning("worker.aborts", worker_id=str(worker_id), aborts=counted.aborts, maintenance=counted.maintenance)
        suspect(transaction, counted.user_id, Suspected.TOO_MANY_ABORTS, worker_id)


def say_alive(runtime: Runtime) -> None:
    """Say that the native API is there."""
    runtime.bus.write(WEB_HEARTBEAT, b"1", 3 * BEAT_SECONDS)


def note_heartbeats(runtime: Runtime) -> bool:
    """Write down which parts are there; whether one of them is back from an outage.

    Parts that were never there are not missed, and one that has been away for a day is forgotten.
    """
    with runtime.database.statements() as transaction:
        began = (
            transaction.execute(
                _BEAT, {"names": _parts_there(runtime), "parts": [*Part], "longest": _longest_silence(runtime)}
            )
            .scalars()
            .all()
        )
        if not began:
            return False
        transaction.execute(text("DELETE FROM outages WHERE ended_at < now() - interval '2 days'"))
    log.warning("horde.was_away", since=min(began).isoformat())
    return True


def _parts_there(runtime: Runtime) -> list[str]:
    parts = [Part.SWEEP]
    if runtime.bus.read(WEB_HEARTBEAT) is not None:
        parts.append(Part.WEB)
    if runtime.bus.has_listeners(QUEUE_CHANNEL):
        parts.append(Part.FRONT)
    return [part.value for part in parts]


def _longest_silence(runtime: Runtime) -> float:
    return max(OUTAGE_SECONDS, MISSED_SWEEPS * runtime.settings.sweep_seconds)


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
            (SELECT NOT EXISTS (SELECT 1 FROM outages o WHERE o.ended_at > :popped_at)
                AND NOT EXISTS (
                    SELECT 1 FROM heartbeats h
                    WHERE h.name = ANY(CAST(:parts AS text[]))
                      AND (h.at < now() - make_interval(secs => :longest)
                           OR h.at < (SELECT last.at FROM heartbeats last WHERE last.name = :sweep))
                )
                AS due) blame,
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
    WITH outage AS (
        INSERT INTO outages (began_at, ended_at)
        SELECT at, now() FROM heartbeats
        WHERE name = ANY(CAST(:names AS text[])) AND at < now() - make_interval(secs => :longest)
        RETURNING began_at
    ), gone AS (
        DELETE FROM heartbeats
        WHERE at < now() - interval '1 day' AND name = ANY(CAST(:parts AS text[]))
            AND name <> ALL(CAST(:names AS text[]))
    ), beat AS (
        INSERT INTO heartbeats (name, at) SELECT name, now() FROM unnest(CAST(:names AS text[])) name
        ON CONFLICT (name) DO UPDATE SET at = greatest(heartbeats.at, excluded.at)
    )
    SELECT began_at FROM outage
    """
)
