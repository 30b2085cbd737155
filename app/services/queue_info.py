"""Reads the queue's figures for statuses and pops: one look at Redis a second and process (native-api N4)."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.capabilities import Requirements
from app.domain.queue_figures import Place, QueueFigures, Work, place
from app.domain.redis_keys import QUEUE_FIGURES
from app.domain.selection import Candidate, obstacle, throughput
from app.services.online import OnlinePool, OnlineWorkers
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime

FRESH_SECONDS = 1.0

WORKERS_ASKED = 64
"""Workers of a request that are asked which other classes they could take; more would say the same."""

_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A request that waits in the queue."""

    requirements: Requirements
    sort_key: float
    created_at: datetime


class QueueInfo:
    """This process's view of the queue's figures, and what was worked out from them."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers, classes: RequirementClasses) -> None:
        self._runtime = runtime
        self._online = online
        self._classes = classes
        self._figures: QueueFigures | None = None
        self._looked_at = float("-inf")
        self._pool: OnlinePool | None = None
        self._shared: dict[Requirements, tuple[list[int], float]] = {}
        self._skipped: dict[str, tuple[Candidate, dict[str, int]]] = {}

    def place(self, transaction: Transaction, waiting: Waiting) -> Place:
        """Return where a waiting request stands among the work that its eligible workers could take."""
        figures = self._current()
        if figures is None:
            return place(None, Work(), 0.0, 0.0)
        class_ids, tokens_per_second = self._competition(transaction, figures, waiting.requirements)
        ahead = figures.ahead(class_ids, waiting.sort_key)
        return place(figures, ahead, tokens_per_second, waiting.created_at.timestamp())

    def skipped(self, transaction: Transaction, candidate: Candidate) -> Mapping[str, int]:
        """Return how many waiting jobs this worker is not given, by reason."""
        figures = self._current()
        if figures is None:
            return {}
        known = self._skipped.get(candidate.id)
        if known is None or known[0] != candidate:
            counts: Counter[str] = Counter()
            for class_id, why in self._classes.obstacles(transaction, candidate, figures.classes).items():
                if why is not None:
                    counts[why] += int(figures.classes[class_id].whole.entries)
            known = self._skipped[candidate.id] = (candidate, dict(counts))
        return known[1]

    def waiting(self, transaction: Transaction) -> list[tuple[Requirements, Work]]:
        """Return what waits, by class; while nobody counts the queue, as much of it as a short look shows."""
        figures = self._current()
        if figures is None:
            work = {row.class_id: Work(int(row.entries), int(row.tokens)) for row in transaction.execute(_SHORT_LOOK)}
        else:
            work = {class_id: counted.whole for class_id, counted in figures.classes.items()}
        classes = self._classes.of(transaction, work)
        return [(klass, work[class_id]) for class_id, klass in classes.items()]

    def known_entries(self) -> int:
        """Return how many jobs waited at the last count; 0 while nobody counts, without a look at the queue."""
        figures = self._current()
        return 0 if figures is None else figures.entries

    def _current(self) -> QueueFigures | None:
        if time.monotonic() - self._looked_at < FRESH_SECONDS:
            return self._figures
        self._looked_at = time.monotonic()
        self._figures = read_figures(self._runtime)
        self._skipped.clear()
        self._shared.clear()
        return self._figures

    def _competition(
        self, transaction: Transaction, figures: QueueFigures, requirements: Requirements
    ) -> tuple[list[int], float]:
        """Return the classes that compete for this request's workers, and what those workers write a second."""
        pool = self._online.pool(transaction)
        if pool is not self._pool:
            self._pool = pool
            self._shared.clear()
        known = self._shared.get(requirements)
        if known is None:
            if len(self._shared) >= _REMEMBERED:
                self._shared.clear()
            able = pool.standing(requirements)[1]
            asked = tuple(islice(able, WORKERS_ASKED))
            classes = [
                class_id
                for class_id, klass in self._classes.of(transaction, figures.classes).items()
                if any(obstacle(candidate, klass) is None for candidate in asked)
            ]
            known = self._shared[requirements] = (classes, throughput(able, requirements))
        return known


_SHORT_LOOK = text(
    """
    SELECT class_id, count(*) AS entries, sum(max_length)::bigint AS tokens
    FROM (SELECT class_id, max_length FROM queue_entries LIMIT 10000) look
    GROUP BY class_id
    """
)


def read_figures(runtime: Runtime) -> QueueFigures | None:
    """Return the queue as it was counted last; None while nobody counts, or Redis is away."""
    payload = runtime.bus.read(QUEUE_FIGURES)
    if payload is None:
        return None
    try:
        return QueueFigures.decode(payload)
    except (ValueError, KeyError, TypeError):
        return None
