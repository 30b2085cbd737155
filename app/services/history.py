"""Looks at the horde each minute and keeps an hour of it in Redis, for the status page (decision 0071).

A look costs one short statement over the pool of workers and one over what ended within the
minute; the queue is taken from its figures, which are counted anyway.
"""

from collections import Counter

import structlog
from sqlalchemy import text

from app.domain.history import MINUTES, Minute, last_hour
from app.domain.redis_keys import HISTORY
from app.services.online import OnlineWorkers
from app.services.queue_info import read_figures
from app.services.runtime import Runtime

MOST_WAITS = 1000
"""Answered generations of a minute whose waits are looked at, the newest."""

log = structlog.get_logger(__name__)


def note_minute(runtime: Runtime) -> Minute:
    """Look at the horde, and keep it as what this minute was like."""
    with runtime.database.statements() as transaction:
        pool = OnlineWorkers(runtime.settings.worker_online_seconds).fresh_pool(transaction)
        answered = transaction.execute(_ANSWERED, {"most": MOST_WAITS}).one()
    figures = read_figures(runtime)
    look = Minute(
        at=int(answered.minute),
        queued=None if figures is None else figures.entries,
        wait_seconds=None if answered.wait is None else float(answered.wait),
        workers=Counter(model for declaration in pool.declarations for model in declaration.served),
    )
    runtime.bus.note(HISTORY, look.at, look.encode(), most=MINUTES, seconds=60 * MINUTES)
    return look


def read_hour(runtime: Runtime, now: int) -> tuple[Minute | None, ...]:
    """Return the sixty minutes up to `now`, in minutes since the epoch; without Redis, gaps."""
    looks = []
    for payload in runtime.bus.noted(HISTORY, now - MINUTES + 1):
        try:
            looks.append(Minute.decode(payload))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("history.unreadable", error=type(error).__name__)
    return last_hour(looks, now)


# The wait of an answered request: from its submit to the pop of the worker that answered it.
_ANSWERED = text(
    """
    SELECT floor(extract(epoch FROM now()) / 60)::bigint AS minute,
           (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.popped_at - r.created_at)::float8)
            FROM (SELECT g.request_id, g.popped_at FROM generations g
                  WHERE g.ended_at > now() - interval '1 minute' AND g.state IN ('verified', 'settled')
                  ORDER BY g.ended_at DESC LIMIT :most) a
            JOIN horde_requests r ON r.id = a.request_id) AS wait
    """
)
