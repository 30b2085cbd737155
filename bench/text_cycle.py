"""The text routes beside the original horde's: 1.5 kB prompts, 80 tokens, 50 requesters, 64 workers.

    python -m bench.text_cycle [--clients 1 8 32] [--depths 10 1000 10000] [--seconds 4] [--calls 400]

Starts a throw-away native API with its task processes (no front: the original has none) and loads it
with closed-loop keep-alive clients. Each line has the calls a second, their latencies, the SQL
statements of the web process a call, and the ratio to the original's figure on the same kind of
machine, where there is one. The first line of each number of clients is the baseline of the run: the bare health route.

At a depth of D, calls that use jobs up begin with so many more in the queue as they will take, and
end at D. What is submitted is settled by the same tasks as chat; at the end every invariant is checked.
"""

import argparse
import asyncio
import itertools
import re
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from app.adapters.database import Database
from app.domain.pricing import KUDOS
from app.services import accounts
from app.services.kudos import grant
from bench.databases import create_database
from bench.load import Call, Figures, closed_loop, counted_loop
from bench.report import Figure, tell
from config.settings import Settings
from tests.support.horde import HordeProcesses
from tests.support.services import LocalServices, wait_until

MODEL = "koboldcpp/Bench-8B"
REQUESTERS, WORKERS = 50, 64
PROMPT = "Once upon a time there was a horde. " * 42
REPLY = " And then it answered." * 14
FILLERS = 16

SETTINGS = {
    "SWEEP_SECONDS": "5",
    "RESCUE_AFTER_SECONDS": "5",
    "QUEUE_REFRESH_SECONDS": "2",
    "GENERATION_TTL_FLOOR_SECONDS": "150",
    "USER_CONCURRENCY": "1000000",
}

ORIGINAL: dict[tuple[str, int], dict[int, float]] = {
    ("async", 0): {1: 15, 8: 16, 32: 16},
    ("async", 10_000): {8: 8},
    ("pop, no job", 0): {1: 41, 8: 44, 32: 36},
    ("pop, job", 10): {1: 25, 8: 33},
    ("pop, job", 1_000): {1: 25, 8: 24, 32: 23},
    ("pop, job", 10_000): {1: 8, 8: 17, 32: 20},
    ("submit", 10): {1: 9, 8: 12, 32: 12},
    ("status", 10): {1: 110, 8: 135, 32: 128},
    ("status", 10_000): {1: 17, 8: 32, 32: 77},
    ("full cycle", 10): {1: 4.9, 8: 5.3, 32: 5.3},
}
"""Calls a second of the original horde, by call, depth and clients."""

TIMES = {
    "async": "async_times",
    "pop, no job": "empty_pop_times",
    "submit": "submit_times",
    "full cycle": "cycle_times",
    "status": "status_times",
    "pop, job": "pop_times",
}
"""The bar on each call's ratio to the original's."""

DEEPEST = 10_000
DEEP = frozenset({"status", "pop, job"})
"""Calls whose bar is at that depth alone."""

ALONE = {
    ("async", 0): ("submit_p50", "submit_rate"),
    ("pop, no job", 0): ("empty_pop_p50", "empty_pop_rate"),
    ("status", 10): ("status_p50", "status_rate"),
}
"""The bars on one web process: the latency of one client, and the rate that any number of clients gets."""


@dataclass
class TextLoad:
    """What requesters and workers do, each next call by the next of them."""

    horde: HordeProcesses
    requesters: list[str]
    worker_key: str
    asked: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    turns: Iterator[int] = field(default_factory=itertools.count)

    async def call(
        self, session: aiohttp.ClientSession, method: str, path: str, key: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Call a text route; anything but success ends the bench."""
        url = f"{self.horde.native}/api/v2/generate/text/{path}"
        async with session.request(method, url, json=body, headers={"apikey": key}) as response:
            answer: dict[str, Any] = await response.json()
            if response.status not in {200, 202}:
                raise RuntimeError(f"{response.status} {path}: {answer}")
            return answer

    async def bare(self, session: aiohttp.ClientSession) -> None:
        """Ask for an answer that needs nothing else."""
        async with session.get(f"{self.horde.native}/healthz") as response:
            await response.read()

    async def ask(self, session: aiohttp.ClientSession) -> None:
        """Submit a request."""
        body = {"prompt": PROMPT, "params": {"max_length": 80, "max_context_length": 2048}, "models": [MODEL]}
        answer = await self.call(session, "POST", "async", self.requesters[next(self.turns) % REQUESTERS], body)
        self.asked.append(answer["id"])

    async def pop(self, session: aiohttp.ClientSession) -> None:
        """Pop as one of the workers."""
        body = {
            "name": f"bench {next(self.turns) % WORKERS}",
            "models": [MODEL],
            "max_length": 512,
            "max_context_length": 8192,
            "bridge_agent": "KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp",
        }
        answer = await self.call(session, "POST", "pop", self.worker_key, body)
        self.jobs.extend(answer["ids"])

    async def pop_job(self, session: aiohttp.ClientSession) -> None:
        """Pop, and get a job."""
        before = len(self.jobs)
        await self.pop(session)
        if len(self.jobs) == before:
            raise RuntimeError("the queue ran dry")

    async def submit(self, session: aiohttp.ClientSession) -> None:
        """Submit the text of a job."""
        body = {"id": self.jobs.pop(), "generation": REPLY, "state": "ok"}
        await self.call(session, "POST", "submit", self.worker_key, body)

    async def status(self, session: aiohttp.ClientSession) -> None:
        """Read a request's status."""
        await self.call(session, "GET", f"status/{self.asked[-1 - next(self.turns) % 10]}", self.requesters[0])

    async def cycle(self, session: aiohttp.ClientSession) -> None:
        """Ask, pop, submit, and read the status."""
        await self.ask(session)
        await self.pop_job(session)
        await self.submit(session)
        await self.status(session)


class Report:
    """Prints each load beside the original's figure."""

    def __init__(self, horde: HordeProcesses) -> None:
        self._horde = horde
        self._bare: dict[int, float] = {}
        self._best: dict[str, float] = {}

    def run(self, name: str, depth: int, call: Call, *, clients: int, calls: int = 0, seconds: float = 0) -> Figures:
        """Run one load, for so many calls or so many seconds, and print what it came to."""
        before = _statements(self._horde)
        if calls:
            figures, made = asyncio.run(counted_loop(call, clients=clients, calls=calls)), calls
        else:
            figures = asyncio.run(closed_loop(call, clients=clients, seconds=seconds))
            made = figures.calls + clients
        statements = (_statements(self._horde) - before) / made
        original = ORIGINAL.get((name, depth), {}).get(clients)
        ratio = "" if original is None else f"  original {original:g}/s  ratio {figures.per_second / original:.1f}"
        bare = self._bare.setdefault(clients, figures.per_second)
        share = figures.per_second / bare
        self._tell(name, depth, clients, figures, statements)
        print(f"{name:<12} depth {depth:>6}  {figures}  SQL {statements:.1f}  of bare {share:.3f}{ratio}", flush=True)
        return figures

    def _tell(self, name: str, depth: int, clients: int, figures: Figures, statements: float) -> None:
        """Tell what the bars ask of this load."""
        original = ORIGINAL.get((name, depth), {}).get(clients)
        share = figures.per_second / self._bare[clients]
        bar = "status_times_32" if (name, clients) == ("status", 32) else TIMES.get(name)
        is_deep = depth == DEEPEST or name not in DEEP
        if original is not None and bar is not None and is_deep:
            tell(Figure(bar, figures.per_second / original, share))
        if (name, depth) in ALONE:
            latency, rate = ALONE[name, depth]
            self._best[rate] = max(self._best.get(rate, 0.0), figures.per_second)
            if clients == 1:
                tell(Figure(latency, figures.p50_ms, 1 / share))
            if name == "status":
                tell(Figure("status_statements", round(statements, 1)))

    def tell_rates(self) -> None:
        """Tell the best rate of each call, once every number of clients was there."""
        best = max(self._bare.values())
        tell(*(Figure(name, rate, rate / best) for name, rate in self._best.items()))


def _statements(horde: HordeProcesses) -> float:
    """SQL statements that the web processes sent so far."""
    with urllib.request.urlopen(f"{horde.native}/metrics", timeout=10) as response:  # noqa: S310 - a URL of ours
        text = response.read().decode()
    values = re.findall(r"^horde_sql_statements_total(?:\{.*\})? (\S+)$", text, re.MULTILINE)
    return sum(float(value) for value in values)


def start(services: LocalServices, folder: Path) -> TextLoad:
    """Start the native API and its task processes on a database of their own, with requesters and a workers' owner."""
    url = create_database(services)
    horde = HordeProcesses(services, url, folder, SETTINGS)
    database = Database(
        Settings(_env_file=None, database_url=url, redis_url=services.redis_url), pool_size=1, application="bench"
    )
    try:
        with database.transaction() as transaction:
            keys = [_account(transaction, f"requester {number}") for number in range(REQUESTERS)]
            owner = _account(transaction, "owner")
    finally:
        database.close()
    for name in ("web", "verdict", "tasks", "beat"):
        horde.start(name)
    wait_until(lambda: horde.call("GET", "/readyz").status == 200, 40, f"not ready, see {folder}")
    return TextLoad(horde, keys, owner)


def _account(transaction: Any, name: str) -> str:
    user_id = accounts.create_user(transaction, name)
    grant(transaction, user_id, 1_000_000 * KUDOS)
    return accounts.create_key(transaction, user_id, "bench")[1]


def fill(load: TextLoad, depth: int) -> None:
    """Bring the queue to this depth."""
    queued = int(str(load.horde.query("SELECT count(*) FROM queue_entries")[0][0]))
    if depth > queued:
        asyncio.run(counted_loop(load.ask, clients=FILLERS, calls=depth - queued))


def empty(load: TextLoad) -> None:
    """Cancel whatever waits, so that the next load begins with an empty queue."""
    waiting = [str(row[0]) for row in load.horde.query("SELECT DISTINCT request_id FROM queue_entries")]

    async def cancel(session: aiohttp.ClientSession) -> None:
        await load.call(session, "DELETE", f"status/{waiting.pop()}", load.requesters[0])

    asyncio.run(counted_loop(cancel, clients=FILLERS, calls=len(waiting)))


def measure(load: TextLoad, options: argparse.Namespace) -> None:
    """Run every load at every number of clients."""
    report = Report(load.horde)
    # All workers are online from the beginning, as in the original's measurement.
    asyncio.run(counted_loop(load.pop, clients=1, calls=WORKERS))
    for clients in options.clients:
        report.run("bare", 0, load.bare, clients=clients, seconds=options.seconds)
        report.run("pop, no job", 0, load.pop, clients=clients, seconds=options.seconds)
        report.run("async", 0, load.ask, clients=clients, seconds=options.seconds)
        empty(load)
    for depth in options.depths:
        for clients in options.clients:
            fill(load, depth + options.calls)
            report.run("status", depth, load.status, clients=clients, seconds=options.seconds)
            report.run("pop, job", depth, load.pop_job, clients=clients, calls=options.calls)
            report.run("submit", depth, load.submit, clients=clients, calls=options.calls)
            report.run("async", depth, load.ask, clients=clients, calls=options.calls)
            report.run("full cycle", depth, load.cycle, clients=clients, calls=options.calls)
    report.tell_rates()
    empty(load)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--depths", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--calls", type=int, default=400)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="horde-text-bench-"))
    with LocalServices() as services:
        load = start(services, folder)
        try:
            measure(load, options)
            load.horde.require_sound(120)
            print("every invariant holds")
        finally:
            load.horde.close()


if __name__ == "__main__":
    main()
