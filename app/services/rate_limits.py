"""Counts calls against their limits: in this process, and over all processes in Redis (native-api N6, ADR 0059)."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from app.adapters.redis_bus import RedisBus
from app.domain.rate_limits import Limit, LimitName
from app.domain.redis_keys import rate_key
from config.settings import Settings

MOST_WINDOWS = 50_000
"""Windows that a process remembers at once."""

Counted = tuple[Limit, str]
"""A limit, and the source whose calls it counts."""


@dataclass(slots=True)
class _Window:
    """Calls of one source: those that every process knows of, and those of this process alone."""

    number: int
    shared: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of the tightest limit of a call, which is over it when less than nothing is left."""

    limit: Limit
    left: int
    reset_at: int

    @property
    def is_spent(self) -> bool:
        """Whether the call is one too many."""
        return self.left < 0

    def headers(self) -> dict[str, str]:
        """Headers as existing clients know them (wire reference 1.3)."""
        return {
            "X-RateLimit-Limit": str(self.limit.calls),
            "X-RateLimit-Remaining": str(max(0, self.left)),
            "X-RateLimit-Reset": str(self.reset_at),
        }


class RateLimits:
    """This process's counters.

    A process tells Redis of its calls by parts of a limit, so that most calls need no round trip.
    While Redis is away, each process knows of its own calls alone and refuses only for those.
    """

    def __init__(self, bus: RedisBus, settings: Settings, now: Callable[[], float] = time.time) -> None:
        self._bus = bus
        self._now = now
        self._lock = Lock()
        self._windows: dict[Counted, _Window] = {}
        self._limits = limits_in(settings)

    def count(self, calls: Iterable[tuple[LimitName, str]]) -> Allowance | None:
        """Count one call against these limits, each with its source; None where nothing limits it."""
        counted = [(self._limits[name], source) for name, source in calls if name in self._limits]
        if not counted:
            return None
        now = self._now()
        due = self._add(counted, now)
        if due:
            self._learn(due, self._bus.add_up(due.values()))
        with self._lock:
            return min((self._allowance(each, now) for each in counted), key=lambda allowance: allowance.left)

    def look(self, limits: Iterable[tuple[LimitName, str]]) -> list[Allowance | None]:
        """Return what is left of these limits, each with its source, counting nothing; None where there is no limit.

        By what all processes have told, or while Redis is away by what this one knows.
        """
        asked = [(self._limits[name], source) if name in self._limits else None for name, source in limits]
        looked = [each for each in asked if each is not None]
        now = self._now()
        keys = [rate_key(limit.name, source, int(now // limit.seconds)) for limit, source in looked]
        told = dict(zip(looked, self._bus.counters(keys), strict=False)) if keys else {}
        with self._lock:
            return [None if each is None else self._seen(each, told.get(each, 0), now) for each in asked]

    def _seen(self, each: Counted, told: int, now: float) -> Allowance:
        limit, number = each[0], int(now // each[0].seconds)
        window = self._windows.get(each)
        if window is not None and window.number == number:
            told = max(told, window.shared) + window.pending
        return Allowance(limit, limit.calls - told, (number + 1) * limit.seconds)

    def _add(self, counted: Iterable[Counted], now: float) -> dict[Counted, tuple[str, int, int]]:
        """Count the call; return what Redis has to be told: a key, how many calls, and for how long they count."""
        due = {}
        with self._lock:
            for each in counted:
                limit, source = each
                window = self._window(each, now)
                window.pending += 1
                if window.pending >= limit.part and window.shared <= limit.calls:
                    due[each] = rate_key(limit.name, source, window.number), window.pending, 2 * limit.seconds
                    window.shared += window.pending
                    window.pending = 0
        return due

    def _learn(self, due: Mapping[Counted, tuple[str, int, int]], totals: list[int]) -> None:
        """Take over what all processes counted; nothing is in `totals` while Redis is away."""
        with self._lock:
            for (each, (key, _, _)), total in zip(due.items(), totals, strict=False):
                window = self._windows.get(each)
                if window is not None and key.endswith(f":{window.number}"):
                    window.shared = max(window.shared, total)

    def _allowance(self, each: Counted, now: float) -> Allowance:
        limit, window = each[0], self._window(each, now)
        return Allowance(limit, limit.calls - window.shared - window.pending, (window.number + 1) * limit.seconds)

    def _window(self, each: Counted, now: float) -> _Window:
        number = int(now // each[0].seconds)
        window = self._windows.get(each)
        if window is None or window.number != number:
            if len(self._windows) >= MOST_WINDOWS:
                self._windows.clear()
            window = self._windows[each] = _Window(number)
        return window


def limits_in(settings: Settings) -> dict[LimitName, Limit]:
    """Return the limits that these settings ask for."""
    if not settings.rate_limits:
        return {}
    limits = (Limit(name, getattr(settings, f"rate_{name.value}")) for name in LimitName)
    return {limit.name: limit for limit in limits if limit.calls > 0}
