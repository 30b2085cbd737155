"""What the horde holds right now, read when it is asked for: figures that no process could count (operations O4).

Counted figures belong to processes and are added up. These belong to the database and the broker, so every
process that shows them shows the same, whichever of them is down: who watches takes the greatest.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import add

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.adapters.database import Transaction
from app.domain.model_labels import counted_for, folded, named
from app.domain.task_names import Queue
from app.services.online import OnlinePool, OnlineWorkers
from app.services.queue_info import QueueInfo
from app.services.readiness import readiness
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime

log = structlog.get_logger(__name__)


class ServiceFigures(Collector):
    """Which outside services this process reaches, and how long Celery's queues are."""

    def __init__(self, runtime: Runtime, *, keeps_objects: bool) -> None:
        self._runtime = runtime
        self._keeps_objects = keeps_objects

    def collect(self) -> Iterable[Metric]:
        """Ask each of them now."""
        lengths = self._runtime.sender.backlogs(Queue)
        reached = readiness(self._runtime, keeps_objects=self._keeps_objects) | {"broker": lengths is not None}
        up = GaugeMetricFamily("horde_service_up", "1 while this process reaches the service.", labels=["service"])
        for service, answers in sorted(reached.items()):
            up.add_metric([service], float(answers))
        yield up
        waiting = GaugeMetricFamily(
            "horde_task_queue_messages", "Celery messages that nobody has taken.", labels=["queue"]
        )
        for queue, length in (lengths or {}).items():
            waiting.add_metric([queue.value], length)
        yield waiting


class HordeFigures(Collector):
    """What waits, who is online, and how far the horde's own work is behind. Nothing while the database is away."""

    def __init__(
        self, runtime: Runtime, online: OnlineWorkers, classes: RequirementClasses, queue_info: QueueInfo
    ) -> None:
        self._runtime = runtime
        self._online = online
        self._classes = classes
        self._queue_info = queue_info

    def collect(self) -> Iterable[Metric]:
        """Look now, in five short statements."""
        try:
            with self._runtime.database.statements() as transaction:
                return [*self._by_model(transaction), *_lags(transaction)]
        except SQLAlchemyError as error:
            log.warning("database.unreachable", error=type(error).__name__, call="metrics")
            return []

    def _by_model(self, transaction: Transaction) -> Iterator[Metric]:
        pool = self._online.pool(transaction)
        workers = _workers(pool)
        waiting: Counter[str] = Counter()
        for klass, work in self._queue_info.waiting(transaction):
            waiting[counted_for(klass.models, workers)] += int(work.entries)
        heads = self._heads(transaction, workers)
        # A model with a worker keeps its name before one that was only asked for.
        names = named(Counter(waiting) + Counter({model: 10**9 * number for model, number in workers.items()}))
        yield GaugeMetricFamily(
            "horde_workers_online", "Workers that are online and get jobs.", value=len(pool.candidates)
        )
        by_model = GaugeMetricFamily("horde_model_workers", "Workers online, by model.", labels=["model"])
        yield _filled(by_model, folded(workers, names, add))
        entries = GaugeMetricFamily("horde_queue_entries", "Wanted generations that wait, by model.", labels=["model"])
        yield _filled(entries, folded(waiting, names, add))
        age = GaugeMetricFamily(
            "horde_queue_head_seconds", "Age of the oldest request that is next in its class.", labels=["model"]
        )
        yield _filled(age, folded(heads, names, max))

    def _heads(self, transaction: Transaction, workers: Counter[str]) -> dict[str, float]:
        """Return the age of the oldest request that is next in line, by model."""
        rows = transaction.execute(_HEADS).all()
        classes = self._classes.of(transaction, [row.class_id for row in rows])
        heads: dict[str, float] = {}
        for row in rows:
            klass = classes.get(row.class_id)
            if klass is not None:
                model = counted_for(klass.models, workers)
                heads[model] = max(heads.get(model, 0.0), float(row.age))
        return heads


def _workers(pool: OnlinePool) -> Counter[str]:
    workers: Counter[str] = Counter()
    for declaration in pool.declarations:
        names = {*declaration.models} if declaration.prompt_jobs else set()
        if declaration.chat_jobs and declaration.model_id:
            names.add(declaration.model_id)
        workers.update(names)
    return workers


def _lags(transaction: Transaction) -> Iterator[Metric]:
    row = transaction.execute(_LAGS).one()
    yield GaugeMetricFamily(
        "horde_verdict_lag_seconds", "Age of the oldest reply that nobody has judged; 0 for none.", value=row.verdict
    )
    yield GaugeMetricFamily(
        "horde_settlement_lag_seconds",
        "Age of the oldest verdict that is not booked; 0 for none.",
        value=row.settlement,
    )
    silence = GaugeMetricFamily(
        "horde_part_silence_seconds", "Since when the sweep saw no sign of a part of the horde.", labels=["part"]
    )
    yield _filled(silence, {beat.name: float(beat.age) for beat in transaction.execute(_SILENCES)})


def _filled(family: GaugeMetricFamily, values: dict[str, float]) -> GaugeMetricFamily:
    for label, value in sorted(values.items()):
        family.add_metric([label], value)
    return family


# One step a class and not one an entry: the head is what a pop would look at first.
_HEADS = text(
    """
    WITH RECURSIVE waiting AS (
        (SELECT class_id FROM queue_entries ORDER BY class_id LIMIT 1)
        UNION ALL
        SELECT (SELECT q.class_id FROM queue_entries q WHERE q.class_id > waiting.class_id
                ORDER BY q.class_id LIMIT 1)
        FROM waiting WHERE waiting.class_id IS NOT NULL
    )
    SELECT waiting.class_id, extract(epoch FROM now() - r.created_at)::float8 AS age
    FROM waiting
    CROSS JOIN LATERAL (
        SELECT q.request_id FROM queue_entries q WHERE q.class_id = waiting.class_id ORDER BY q.sort_key LIMIT 1
    ) head
    JOIN horde_requests r ON r.id = head.request_id
    """
)

# A verdict's turn comes at once and is never put off, so it tells its age; a reply's turn is put off by each attempt.
_LAGS = text(
    """
    SELECT COALESCE(extract(epoch FROM now() - (
               SELECT submitted_at FROM generations WHERE state = 'submitted' ORDER BY submitted_at LIMIT 1
           ))::float8, 0) AS verdict,
           COALESCE(extract(epoch FROM now() - (
               SELECT next_dispatch_at FROM generations WHERE state = 'verified' ORDER BY next_dispatch_at LIMIT 1
           ))::float8, 0) AS settlement
    """
)

_SILENCES = text(
    """
    SELECT name, extract(epoch FROM now() - at)::float8 AS age FROM heartbeats
    WHERE name IN ('sweep', 'web', 'front')
    """
)
