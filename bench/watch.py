"""What a horde's processes and services hold and use, minute by minute: memory, connections, CPU time."""

import contextlib
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psutil
from redis import Redis

from bench.cpu import fixed_work_ms, spent_since, used_by
from tests.support.horde import HordeProcesses

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Held:
    """What a process and its children hold: memory of their own in megabytes, and TCP connections."""

    megabytes: float
    connections: int


@dataclass(frozen=True, slots=True)
class Look:
    """One look at everything.

    `at` is in seconds since the first; `redis_keys` counts all keys there are; `used` is each process's
    CPU time so far, in seconds; `work_ms` is what a piece of work that is always the same took.
    """

    at: float
    held: dict[str, Held]
    redis_keys: int
    used: dict[str, float]
    work_ms: float


@dataclass
class Watch:
    """Looks at a horde whenever it is told to."""

    horde: HordeProcesses
    looks: list[Look] = field(default_factory=list)
    _began: float | None = None

    def look(self) -> None:
        """Note what everything holds now."""
        services = {service.name: service.pid for service in (self.horde.services.postgres, self.horde.services.redis)}
        roots = {name: process.pid for name, process in self.horde.running.items()} | services
        held = {name: _held(pid) for name, pid in roots.items() if pid is not None}
        with Redis.from_url(self.horde.services.redis_url) as redis:
            keys = int(redis.dbsize())
        used, work = used_by(self.horde), fixed_work_ms()
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        self.looks.append(Look(now - self._began, held, keys, used, work))

    @property
    def names(self) -> list[str]:
        """The processes and services of the last look, the largest first."""
        last = self.looks[-1].held
        return sorted(last, key=lambda name: -last[name].megabytes)

    def megabytes(self, name: str) -> list[float]:
        """The memory of a process at each look."""
        return [look.held[name].megabytes for look in self.looks if name in look.held]

    def connections(self, name: str) -> list[float]:
        """The connections of a process at each look."""
        return [float(look.held[name].connections) for look in self.looks if name in look.held]

    def cores(self, name: str) -> list[float]:
        """The CPU time of a process, in seconds a second, from each look to the next."""
        steps = zip(self.looks, self.looks[1:], strict=False)
        return [
            max(0.0, spent_since(before.used, after.used)[name]) / (after.at - before.at)
            for before, after in steps
            if name in before.used and name in after.used
        ]

    def minutes(self) -> list[float]:
        """When each look was, in minutes."""
        return [look.at / 60 for look in self.looks]


@dataclass(frozen=True, slots=True)
class Drift:
    """How a series went: its middle in the second fifth of the time, when all is warm, and in the last."""

    early: float
    late: float

    @classmethod
    def of(cls, series: Sequence[float]) -> "Drift":
        """The drift of a series of at least ten values."""
        fifth = max(1, len(series) // 5)
        return cls(statistics.median(series[fifth : 2 * fifth]), statistics.median(series[-fifth:]))

    @property
    def ratio(self) -> float:
        """The late middle to the early one."""
        return self.late / self.early

    def grew_by(self, share: float, least: float) -> bool:
        """Whether it grew by more than this share of itself and more than `least`."""
        return self.late - self.early > max(share * self.early, least)

    def __str__(self) -> str:
        return f"{self.early:8.1f} → {self.late:8.1f}"


def _held(pid: int) -> Held:
    megabytes, connections = 0.0, 0
    for process in _tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            megabytes += process.memory_full_info().uss / MEGABYTE
            connections += sum(each.status == psutil.CONN_ESTABLISHED for each in process.net_connections("tcp"))
    return Held(megabytes, connections)


def _tree(pid: int) -> Iterator[psutil.Process]:
    root = psutil.Process(pid)
    yield root
    yield from root.children(recursive=True)
