"""Writes the queue's figures to Redis, and the workers' measured speeds to their table (native-api N4).

Both run as tasks, so no request pays for them. A long queue is counted less often: the
refresh rests so many times longer than it took that it never costs more than 2 % of a core.
"""

import time
from collections import defaultdict

from sqlalchemy import text

from app.domain.queue_figures import RANKS, ClassFigures, QueueFigures, Rank
from app.domain.redis_keys import QUEUE_FIGURES, QUEUE_REFRESH_REST
from app.services.runtime import Runtime

KEPT_SECONDS = 300
"""Figures that nobody wrote anew for so long are none."""

SAMPLES = 20
"""Newest accepted generations that a worker's speed is the mean of (wire reference 4.9)."""

SHARE = 0.02
"""Largest share of the time that counting may take."""


def refresh_queue(runtime: Runtime) -> bool:
    """Count the queue by class and rank. False while it rests after a count."""
    if not runtime.bus.first_in(QUEUE_REFRESH_REST, int(900 * runtime.settings.queue_refresh_seconds)):
        return False
    started = time.perf_counter()
    with runtime.database.statements() as transaction:
        at = float(transaction.execute(_NOW).scalar_one())
        rows = transaction.execute(_RANKS, {"ranks": RANKS}).all()
    ranks: dict[int, list[Rank]] = defaultdict(list)
    for row in rows:
        ranks[row.class_id].append(Rank(row.last, row.entries, row.tokens))
    figures = QueueFigures(at, {class_id: ClassFigures.of(found) for class_id, found in ranks.items()})
    runtime.bus.write(QUEUE_FIGURES, figures.encode(), KEPT_SECONDS)
    rest = (time.perf_counter() - started) / SHARE
    if rest > runtime.settings.queue_refresh_seconds:
        runtime.bus.write(QUEUE_REFRESH_REST, b"1", rest)
    return True


def measure_speeds(runtime: Runtime) -> int:
    """Measure the online workers anew; return how many speeds there are."""
    values = {"samples": SAMPLES, "online": runtime.settings.worker_online_seconds}
    with runtime.database.statements() as transaction:
        return len(transaction.execute(_MEASURE, values).all())


# Read before the count, so that a request that this time is past is one that the count has seen.
_NOW = text("SELECT extract(epoch FROM now())::float8")

_RANKS = text(
    """
    SELECT class_id, max(sort_key) AS last, count(*) AS entries, sum(max_length)::bigint AS tokens
    FROM (SELECT class_id, sort_key, max_length,
                 ntile(:ranks) OVER (PARTITION BY class_id ORDER BY sort_key) AS rank
          FROM queue_entries) ranked
    GROUP BY class_id, rank
    ORDER BY class_id, rank
    """
)

# A sample is what a reply counts for over the time from its pop to its submit (native-api N5).
_MEASURE = text(
    """
    INSERT INTO worker_speeds (worker_id, model, tokens_per_second, samples, measured_at)
    SELECT w.id, s.model, avg(s.speed), count(*), now()
    FROM workers w
    CROSS JOIN LATERAL (
        SELECT g.model, g.tokens / greatest(extract(epoch FROM g.submitted_at - g.popped_at)::float8, 0.001) AS speed
        FROM generations g
        WHERE g.worker_id = w.id AND g.state IN ('verified', 'settled') AND g.tokens > 0
        ORDER BY g.ended_at DESC
        LIMIT :samples
    ) s
    WHERE w.last_seen_at > now() - make_interval(secs => :online)
    GROUP BY w.id, s.model
    ON CONFLICT (worker_id, model) DO UPDATE
        SET tokens_per_second = excluded.tokens_per_second, samples = excluded.samples, measured_at = now()
    RETURNING worker_id
    """
)
