"""A day of a worker's life in 24 minutes: thousands of jobs, with outages of the horde and of the backend.

    python -m bench.worker_soak
    python -m bench.worker_soak --jobs 300 --seconds 30

Horde and backend are scripted, the worker is the real one as a process. Every period
of the worker is scaled with the day. At the end: no job is lost, the limit of aborted
jobs an hour was never passed (so no maintenance), and memory is flat.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil
from aiohttp import web

from tests.support.scripted_backend import ScriptedBackend, running_backend
from tests.tools.chat_worker_example.scripted_horde import LOST, ScriptedHorde, running_horde
from tests.tools.chat_worker_example.worker_process import WorkerProcess, running_worker

DAY_HOURS = 24
ABORT_LIMIT = 20
OUTAGE_SHARE = 0.1
"""Of the day, each of the two sides is away for about so long."""

SPOILT_SHARE = 0.03
MARKERS = ("status=500", "malformed", "drop", "bad_utf8")
STREAMED_MARKERS = (*MARKERS, "cut", "quit")
PATIENCE_SECONDS = 60.0
"""Time beyond the day for the last jobs."""

SETTLED_SHARE = 0.2
"""Memory is compared with what it was after this share of the day."""


@dataclass
class SoakHorde(ScriptedHorde):
    """Gives a faulted job out again, as the real horde does, and remembers how each one ended."""

    texts: dict[str, str] = field(default_factory=dict)
    served: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    aborts: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    _ended: set[str] = field(default_factory=set)

    async def ask(self, text: str, stream: bool, marker: str = "") -> None:
        """Queues a job that has to be answered with this text."""
        job_id = await self.give(marker + text, stream=stream, ttl=30)
        self.texts[job_id] = text

    async def submit(self, request: web.Request) -> web.Response:
        """Judges the first submit of each job; a repeat gets the same answer."""
        body: dict[str, Any] = json.loads(await request.read())
        if body["id"] not in self._ended:
            self._ended.add(body["id"])
            await self._end(body)
        response: web.Response = await super().submit(request)
        self.submits.clear()
        self.pops.clear()
        self.posts.clear()
        self.keys.clear()
        return response

    @property
    def under_way(self) -> int:
        """Jobs that were given out and have not ended."""
        return len({job["id"] for job in self._given.values()} - self._ended)

    @property
    def queued(self) -> int:
        """Jobs that nobody has asked for yet."""
        return len(self._waiting)

    async def _end(self, body: dict[str, Any]) -> None:
        text = self.texts[body["id"]]
        if body["state"] == "ok":
            self.served[text] += 1
            self.wrong += body["message"]["content"] != text
        else:
            self.aborts.append(asyncio.get_running_loop().time())
            self.faults[body["fault"]] += 1
            await self.ask(text, stream=False)


@dataclass
class Outcome:
    """What a day came to."""

    jobs: int
    served: int
    wrong: int
    lost: int
    queued: int
    """Jobs that nobody had asked for at the end."""
    under_way: int
    """Jobs that were given out and did not end."""
    served_twice: int
    faults: dict[str, int]
    most_aborts_an_hour: int
    horde_outages: int
    backend_outages: int
    seconds: float
    memory_mib: float
    growth_mib: float

    @property
    def holds(self) -> bool:
        """Whether the day was as it has to be."""
        kept = self.served == self.jobs and not self.wrong and not self.lost and not self.served_twice
        return kept and self.most_aborts_an_hour <= ABORT_LIMIT and self.growth_mib < 10


@dataclass
class Day:
    """Outages come while it lasts.

    Before it, the worker probes: that takes several calls, and between two outages of so short a
    day a busy machine may never have the time. After it, the last jobs are served, for the same reason.
    """

    seconds: float
    dice: random.Random
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def some_seconds(self) -> float:
        """About a twentieth of the day."""
        return self.dice.uniform(0.5, 1.5) * self.seconds / 20

    async def is_over_soon(self) -> bool:
        """Waits for some seconds of the day, or until it is over, which it then says."""
        await self.begun.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), self.some_seconds())
        return self.over.is_set()


@asynccontextmanager
async def failing(
    start: Callable[[], AbstractAsyncContextManager[Any]], day: Day, count: list[int]
) -> AsyncIterator[None]:
    """Keeps one side up until the end, but for random outages during the day."""
    up, closing = asyncio.Event(), asyncio.Event()

    async def keep() -> None:
        while not closing.is_set():
            async with start():
                up.set()
                if await day.is_over_soon():
                    await closing.wait()
            if not closing.is_set():
                count.append(1)
                await asyncio.sleep(day.some_seconds() * OUTAGE_SHARE)

    task = asyncio.create_task(keep())
    try:
        await up.wait()
        yield
    finally:
        closing.set()
        day.begun.set()
        day.over.set()
        await task


def most_in_a_window(moments: list[float], window: float) -> int:
    """The most moments that lie within one window."""
    recent: deque[float] = deque()
    most = 0
    for moment in moments:
        recent.append(moment)
        while recent[0] <= moment - window:
            recent.popleft()
        most = max(most, len(recent))
    return most


async def ask_all(horde: SoakHorde, jobs: int, seconds: float, dice: random.Random) -> None:
    """Queues the jobs over the day, some of them spoilt, and loses some answers of the horde."""
    for number in range(jobs):
        stream = dice.random() < 0.5
        marker = f"[[delay={dice.uniform(0, 0.3):.2f}]]" + ("[[pace=0.01]]" if stream else "")
        if dice.random() < SPOILT_SHARE:
            marker += f"[[{dice.choice(STREAMED_MARKERS if stream else MARKERS)}]]"
        await horde.ask(f"job {number} " + "with a few words " * dice.randrange(1, 6), stream, marker)
        if dice.random() < 0.05:
            dice.choice((horde.pop_script, horde.submit_script, horde.progress_script)).append(LOST)
        await asyncio.sleep(seconds / jobs)


def settings(horde: ScriptedHorde, backend: ScriptedBackend, threads: int, seconds: float) -> dict[str, str]:
    """A worker whose day is so short."""
    hour = seconds / DAY_HOURS
    return {
        "HORDE_URL": horde.url,
        "HORDE_API_KEY": "soak",
        "BACKEND_URL": backend.url,
        "MODEL_NAME": "scripted-model",
        "WORKER_NAME": "Soak",
        "WORKER_THREADS": str(threads),
        "PROGRESS_SECONDS": "0.1",
        "HEARTBEAT_SECONDS": "0.5",
        "ABORT_LIMIT": str(ABORT_LIMIT),
        "ABORT_WINDOW_SECONDS": f"{hour:.2f}",
        "REFUSED_PAUSE_SECONDS": f"{max(hour / 60, 0.05):.2f}",
    }


def resident_mib(worker: WorkerProcess) -> float:
    """Memory of the worker's process."""
    return float(psutil.Process(worker.process.pid).memory_info().rss) / 2**20


async def soak(jobs: int, seconds: float, threads: int, seed: int) -> Outcome:
    """Runs the day; returns what it came to."""
    dice = random.Random(seed)  # noqa: S311 - a run can be repeated by its seed
    loop = asyncio.get_running_loop()
    horde = SoakHorde()
    async with running_horde(horde=horde), running_backend() as backend:
        at = settings(horde, backend, threads, seconds)
    ports = [int(url.rpartition(":")[2]) for url in (horde.url, backend.url)]
    horde_outages: list[int] = []
    backend_outages: list[int] = []
    day = Day(seconds, dice)
    async with (
        failing(lambda: running_horde(horde=horde, port=ports[0]), day, horde_outages),
        failing(lambda: running_backend(port=ports[1]), day, backend_outages),
        running_worker(**at) as worker,
    ):
        await worker.event("declared")
        started = loop.time()
        day.begun.set()
        asking = asyncio.create_task(ask_all(horde, jobs, seconds, dice))
        await asyncio.sleep(seconds * SETTLED_SHARE)
        settled = resident_mib(worker)
        await asking
        day.over.set()
        with contextlib.suppress(TimeoutError):
            await horde.until(lambda: horde.served.total() >= jobs, seconds=PATIENCE_SECONDS)
        memory = resident_mib(worker)
        lost = len(worker.events("job_lost"))
    return Outcome(
        jobs=jobs,
        served=len(horde.served),
        wrong=horde.wrong,
        lost=lost,
        queued=horde.queued,
        under_way=horde.under_way,
        served_twice=sum(count > 1 for count in horde.served.values()),
        faults=dict(horde.faults),
        most_aborts_an_hour=most_in_a_window(horde.aborts, seconds / DAY_HOURS),
        horde_outages=len(horde_outages),
        backend_outages=len(backend_outages),
        seconds=round(loop.time() - started, 1),
        memory_mib=round(memory, 1),
        growth_mib=round(memory - settled, 1),
    )


def main() -> int:
    """Runs one day and prints its outcome; 1 when something did not hold."""
    parser = argparse.ArgumentParser(description="A day of a worker's life, in less time.")
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=24 * 60, help="length of the day")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    outcome = asyncio.run(soak(arguments.jobs, arguments.seconds, arguments.threads, arguments.seed))
    print(json.dumps(asdict(outcome), indent=2))
    print("holds" if outcome.holds else "DOES NOT HOLD")
    return 0 if outcome.holds else 1


if __name__ == "__main__":
    sys.exit(main())
