"""How the horde is doing: what waits, who is online, what each model can take (wire reference 2.8).

Queue figures are as of the last count (two seconds), workers as of a second ago.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from app.adapters.database import Transaction
from app.domain.capabilities import Requirements
from app.domain.model_sizes import is_in_table
from app.domain.queue_figures import Work
from app.domain.selection import Candidate
from app.domain.worker_profile import WORKER_TYPE
from app.services.online import OnlineWorkers
from app.services.queue_info import QueueInfo
from app.services.runtime import Runtime
from app.services.statistics import Statistics

UNKNOWN_ETA = 10_000
"""Seconds shown for a model that nobody serves, or whose speed nobody measured."""

VERSION = "1"
"""Version of the text API as clients read it; the horde's own is in its OpenAPI document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFilter:
    """Which models a client wants to see."""

    min_count: int | None = None
    max_count: int | None = None
    state: str = "all"

    def shows(self, name: str, threads: int) -> bool:
        """Whether a model with so many threads is one of them."""
        if self.min_count is not None and threads < self.min_count:
            return False
        if self.max_count is not None and threads > self.max_count:
            return False
        return self.state == "all" or is_in_table(name) == (self.state == "known")


class Performance:
    """The use cases of `/status/heartbeat`, `/status/performance` and `/status/models`."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers, queue_info: QueueInfo, statistics: Statistics) -> None:
        self._runtime = runtime
        self._online = online
        self._queue_info = queue_info
        self._statistics = statistics

    def heartbeat(self) -> dict[str, Any]:
        """Say that the API answers, and whether its database does; never raises."""
        reachable = True
        try:
            self._runtime.database.ping()
        except SQLAlchemyError:
            reachable = False
        return {
            "message": "OK" if reachable else "DOWN",
            "version": VERSION,
            "queue": self._queue_info.known_entries(),
            "threads": self._runtime.settings.native_threads,
            "active_count": threading.active_count(),
            "db_connection": reachable,
        }

    def figures(self) -> dict[str, int | float]:
        """Return what waits and who serves. Everything about images and alchemy is 0: there is none."""
        with self._runtime.database.statements() as transaction:
            pool = self._online.pool(transaction)
            waiting = sum((work for _, work in self._queue_info.waiting(transaction)), Work())
        return {
            "queued_requests": 0,
            "queued_text_requests": int(waiting.entries),
            "queued_megapixelsteps": 0,
            "queued_tokens": float(waiting.tokens),
            "queued_forms": 0,
            "worker_count": 0,
            "thread_count": 0,
            "interrogator_count": 0,
            "interrogator_thread_count": 0,
            "text_worker_count": len(pool.candidates),
            "text_thread_count": pool.threads,
            "past_minute_megapixelsteps": 0,
            "past_minute_tokens": self._statistics.totals()["minute"]["tokens"],
        }

    def models(self, wanted: ModelFilter) -> list[dict[str, Any]]:
        """Return the models that text requests may name and that somebody serves or waits for."""
        with self._runtime.database.statements() as transaction:
            statuses = self._statuses(transaction)
        return [status for name, status in sorted(statuses.items()) if wanted.shows(name, status["count"])]

    def model(self, name: str) -> dict[str, Any]:
        """Return one model's status; zeros for one that nobody serves."""
        with self._runtime.database.statements() as transaction:
            return self._statuses(transaction).get(name) or _status(name, (), Work())

    def _statuses(self, transaction: Transaction) -> dict[str, dict[str, Any]]:
        serving: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in self._online.pool(transaction).candidates:
            if candidate.declaration.prompt_jobs:
                for model in dict.fromkeys(candidate.declaration.models):
                    serving[model].append(candidate)
        queued: dict[str, Work] = defaultdict(Work)
        for requirements, work in self._queue_info.waiting(transaction):
            for model, share in _shares(requirements, work):
                queued[model] += share
        return {name: _status(name, serving.get(name, ()), queued.get(name, Work())) for name in {*serving, *queued}}


def _shares(requirements: Requirements, work: Work) -> Iterable[tuple[str, Work]]:
    """Divide a class of text requests evenly over the models that it names."""
    models = () if requirements.is_chat else requirements.models
    return [(model, Work(work.entries / len(models), work.tokens / len(models))) for model in models]


def _status(name: str, serving: Iterable[Candidate], queued: Work) -> dict[str, Any]:
    """Return a model's status. `performance` is tokens a second of one thread, `eta` seconds for what waits."""
    known = list(serving)
    threads = sum(candidate.declaration.threads for candidate in known)
    speeds = [candidate.speeds[name] for candidate in known if name in candidate.speeds]
    speed = sum(speeds) / len(speeds) if speeds else 0.0
    return {
        "name": name,
        "type": WORKER_TYPE,
        "count": threads,
        "performance": round(speed, 1),
        "queued": float(round(queued.tokens)),
        "jobs": round(queued.entries),
        "eta": _eta(queued.tokens, speed * threads),
    }


def _eta(tokens: float, tokens_per_second: float) -> int:
    if tokens_per_second <= 0:
        return UNKNOWN_ETA
    return ceil(tokens / tokens_per_second)
