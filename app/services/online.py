"""Who is online: one snapshot of the workers that everything about availability reads (details D11)."""

import time
from collections import defaultdict
from collections.abc import Iterable
from threading import Lock

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.capabilities import Availability, Declaration, Requirements, covers_whole_class
from app.domain.selection import Candidate, availability, obstacle

FRESH_SECONDS = 1.0
REFUSAL_SECONDS = 0.25
"""An answer that says that nobody serves a request rests on a look that is at most this old."""

MOST_RIVALS = 16
"""Other workers that a claim weighs against one that failed a request; more than a request may fail on."""

_REMEMBERED = 10_000
"""Requirements whose availability one snapshot remembers."""

_ONLINE = text(
    """
    SELECT w.id, w.declaration, u.trusted,
           (SELECT jsonb_object_agg(s.model, s.tokens_per_second) FROM worker_speeds s WHERE s.worker_id = w.id)
               AS speeds
    FROM workers w
    JOIN users u ON u.id = w.user_id
    WHERE w.last_seen_at > now() - make_interval(secs => :online) AND NOT w.maintenance
      AND NOT w.paused AND w.deleted_at IS NULL
    ORDER BY w.name
    """
)

Standing = tuple[Availability, tuple[Candidate, ...]]


class OnlinePool:
    """All online workers at one moment, and what was worked out about them since."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.candidates = tuple(candidates)
        self._by_model: dict[tuple[bool, str], list[Candidate]] = defaultdict(list)
        for candidate in self.candidates:
            declared = candidate.declaration
            if declared.chat_jobs and declared.model_id:
                self._by_model[True, declared.model_id].append(candidate)
            if declared.prompt_jobs:
                for model in dict.fromkeys(declared.models):
                    self._by_model[False, model].append(candidate)
        self._standings: dict[Requirements, Standing] = {}
        self._rivals: dict[tuple[Requirements, str], tuple[Candidate, ...]] = {}
        self.refused_words = frozenset(word for one in self.candidates for word in one.declaration.blacklist)

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """What the workers declare."""
        return tuple(candidate.declaration for candidate in self.candidates)

    def availability(self, requirements: Requirements) -> Availability:
        """Say who could serve these requirements, and what is missing when nobody can."""
        return self.standing(requirements)[0]

    @property
    def threads(self) -> int:
        """Jobs that the online workers can run at once."""
        return sum(declaration.threads for declaration in self.declarations)

    def standing(self, requirements: Requirements) -> Standing:
        """Say who could serve these requirements, with those workers."""
        known = self._standings.get(requirements)
        if known is None:
            if len(self._standings) >= _REMEMBERED:
                self._standings.clear()
            known = self._standings[requirements] = availability(self.serving(requirements), requirements)
        return known

    def serving(self, requirements: Requirements) -> tuple[Candidate, ...]:
        """Return the workers of the models that a request names; all when it names none."""
        if not requirements.models:
            return self.candidates
        if len(requirements.models) == 1:
            return tuple(self._by_model.get((requirements.is_chat, requirements.models[0]), ()))
        found = {
            candidate.id: candidate
            for model in requirements.models
            for candidate in self._by_model.get((requirements.is_chat, model), ())
        }
        return tuple(found.values())

    def rivals(self, klass: Requirements, worker_id: str) -> tuple[Candidate, ...]:
        """Return other workers that get requests of a class; first those that get all of them."""
        known = self._rivals.get((klass, worker_id))
        if known is None:
            others = [
                candidate
                for candidate in self.serving(klass)
                if candidate.id != worker_id and obstacle(candidate, klass) is None
            ]
            others.sort(key=lambda candidate: not covers_whole_class(candidate.declaration, klass))
            known = self._rivals[klass, worker_id] = tuple(others[:MOST_RIVALS])
        return known


class OnlineWorkers:
    """This process's snapshot of the pool, taken again when it is older than a second."""

    def __init__(self, online_seconds: int) -> None:
        self._online_seconds = online_seconds
        self._lock = Lock()
        self._pool = OnlinePool(())
        self._taken_at = float("-inf")

    @property
    def last(self) -> OnlinePool:
        """The newest snapshot, without a look at the database."""
        return self._pool

    def pool(self, transaction: Transaction) -> OnlinePool:
        """Return a snapshot that is at most a second old."""
        if time.monotonic() - self._taken_at < FRESH_SECONDS:
            return self._pool
        return self.fresh_pool(transaction)

    def standing(self, transaction: Transaction, requirements: Requirements) -> Standing:
        """Say who could serve these requirements; that nobody can is said on a fresh look alone (native-api N4)."""
        found = self.pool(transaction).standing(requirements)
        if found[0].eligible_workers or time.monotonic() - self._taken_at < REFUSAL_SECONDS:
            return found
        return self.fresh_pool(transaction).standing(requirements)

    def fresh_pool(self, transaction: Transaction) -> OnlinePool:
        """Take a snapshot now: for answers that refuse."""
        rows = transaction.execute(_ONLINE, {"online": self._online_seconds})
        pool = OnlinePool(
            Candidate(
                id=str(row.id),
                declaration=Declaration.from_stored(row.declaration),
                trusted=row.trusted,
                speeds=row.speeds or {},
            )
            for row in rows
        )
        with self._lock:
            self._pool = pool
            self._taken_at = time.monotonic()
        return pool
