"""What the status page shows: one look a process every two seconds, whoever asks (operations O4, decision 0071)."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from threading import Lock

from sqlalchemy import text

from app.domain.history import MINUTES, Minute
from app.domain.queue_figures import Work
from app.domain.requirements import Requirements
from app.domain.selection import Candidate
from app.services.history import read_hour
from app.services.incidents import ShownIncident, current_incident
from app.services.online import OnlineWorkers
from app.services.queue_info import QueueInfo
from app.services.runtime import Runtime

FRESH_SECONDS = 2.0
"""How old a look may be before the next one is taken."""

MOST_MODELS = 100
"""Models that are shown, those with the most threads: names are the workers' own, and there is no end to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNow:
    """A model that somebody serves. `eta_seconds` is None where nobody can say."""

    name: str
    takes_chat: bool
    takes_text: bool
    workers: int
    threads: int
    tokens_per_second: float
    queued: int
    eta_seconds: int | None


@dataclass(frozen=True, slots=True)
class Delivered:
    """What was delivered within one minute."""

    replies: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HordeNow:
    """The horde at one moment, and its last hour by minutes, oldest first.

    `models` are those shown of `models_online`; `stranded` are waiting jobs that name models nobody serves.
    """

    at: datetime
    incident: ShownIncident | None
    workers: int
    threads: int
    queued: Work
    models: tuple[ModelNow, ...]
    models_online: int
    stranded: int
    hour: tuple[Minute | None, ...]
    delivered: tuple[Delivered, ...]


class StatusPage:
    """This process's look at the horde, shared by every reader."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers, queue_info: QueueInfo) -> None:
        self._runtime = runtime
        self._online = online
        self._queue_info = queue_info
        self._lock = Lock()
        self._known: HordeNow | None = None
        self._looked_at = float("-inf")

    def read(self) -> HordeNow:
        """Return a look that is two seconds old at most; an older one while another thread takes the next."""
        known = self._known
        if known is not None and (self._is_fresh or self._lock.locked()):
            return known
        with self._lock:
            if self._known is None or not self._is_fresh:
                self._known = self._look()
                self._looked_at = time.monotonic()
            return self._known

    @property
    def _is_fresh(self) -> bool:
        return time.monotonic() - self._looked_at < FRESH_SECONDS

    def _look(self) -> HordeNow:
        with self._runtime.database.statements() as transaction:
            pool = self._online.pool(transaction)
            serving = _serving(pool.candidates)
            everything, queued = _shares(self._queue_info.waiting(transaction))
            incident = current_incident(transaction)
            now = transaction.execute(_NOW).one()
            counted = {
                row.minute: Delivered(int(row.replies), int(row.tokens))
                for row in transaction.execute(_HOUR, {"minutes": MINUTES})
            }
        return HordeNow(
            at=now.at,
            incident=incident,
            workers=len(pool.candidates),
            threads=pool.threads,
            queued=everything,
            models=tuple(_model(name, serving[name], queued.get(name, Work())) for name in _shown(serving)),
            models_online=len(serving),
            stranded=ceil(sum(work.entries for name, work in queued.items() if name not in serving)),
            hour=read_hour(self._runtime, now.minute),
            delivered=tuple(counted.get(each, Delivered()) for each in range(now.minute - MINUTES + 1, now.minute + 1)),
        )


def _serving(candidates: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    """Return the workers of each model."""
    serving: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        for model in candidate.declaration.served:
            serving[model].append(candidate)
    return serving


def _shares(waiting: Iterable[tuple[Requirements, Work]]) -> tuple[Work, dict[str, Work]]:
    """Return all that waits, and what of it waits for each model: of a request that names several, its part."""
    everything, queued = Work(), defaultdict[str, Work](Work)
    for requirements, work in waiting:
        everything += work
        for model in requirements.models:
            queued[model] += Work(work.entries / len(requirements.models), work.tokens / len(requirements.models))
    return everything, queued


def _shown(serving: Mapping[str, list[Candidate]]) -> list[str]:
    threads = {name: sum(each.declaration.threads for each in workers) for name, workers in serving.items()}
    return sorted(sorted(threads, key=lambda name: (-threads[name], name))[:MOST_MODELS])


def _model(name: str, serving: list[Candidate], queued: Work) -> ModelNow:
    declared = [candidate.declaration for candidate in serving]
    speed = sum(each.speeds.get(name, 0.0) * each.declaration.threads for each in serving)
    return ModelNow(
        name=name,
        takes_chat=any(each.chat_jobs and each.model_id == name for each in declared),
        takes_text=any(each.prompt_jobs and name in each.models for each in declared),
        workers=len(serving),
        threads=sum(each.threads for each in declared),
        tokens_per_second=speed,
        queued=round(queued.entries),
        eta_seconds=ceil(queued.tokens / speed) if speed > 0 else None,
    )


_NOW = text("SELECT now() AS at, floor(extract(epoch FROM now()) / 60)::bigint AS minute")

_HOUR = text(
    """
    SELECT floor(extract(epoch FROM starts_at) / 60)::bigint AS minute,
           sum(requests) AS replies, sum(tokens) AS tokens
    FROM model_statistics
    WHERE period = 'minute' AND starts_at > now() - make_interval(mins => :minutes)
    GROUP BY starts_at
    """
)
