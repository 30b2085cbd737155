"""A horde under half its load for half an hour: what it holds must not grow, nor what a call takes.

    python -m bench.soak [--minutes 30] [--share 0.5] [--plots docs/explanation]

Starts every process of the Procfile, Flower among them, and the services, with the periods as they
come. First 32 clients that ask again at once show what the horde can do; then calls come at a steady
rate, half of that, without waiting for each other: plain chats, streams, chats at the native API
that are polled, and streams whose client leaves in the middle. Every ten seconds each process is
looked at, with its children: memory of its own (what it shares counts for nobody), TCP connections,
CPU time, keys in Redis; and how long a piece of work takes that is always the same, which tells how fast
the machine is just then. At the end the last fifth of the time is compared with the second: memory may
be a tenth higher or 5 MB, connections by two, and the middle call a fifth slower than that piece of work
became. Every call has to be answered, and every invariant has to hold. `--plots` draws the curves. Exit
code 1 when a bar is missed.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import aiohttp

from bench.cpu import spent_since, used_by
from bench.plot import Line, plot
from bench.roundtrip import BODY, DURABLE, start, start_flower
from bench.watch import Drift, Watch
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import LocalServices

FULL_CLIENTS = 32
FULL_SECONDS = 20.0
LOOK_SECONDS = 10.0
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.2
REST_SECONDS = 120.0

MEMORY_SHARE, MEMORY_MEGABYTES = 0.1, 5.0
CONNECTIONS = 2.0
SLOWER = 1.2
MAIN = ("web", "front", "postgres", "redis", "verdict", "tasks")
"""The curves of the plots; the other processes are in the table."""

OWN = {"media": {"MEDIA_ORPHAN_SECONDS": "60"}, "beat": {"MEDIA_ORPHAN_SECONDS": "60"}}
"""Upkeep of the object store comes every minute, so that its client is there long before memory is compared."""

SLOW = BODY | {"messages": [{"role": "user", "content": "[[pace=0.05]] " + "Hello, horde. " * 20}], "stream": True}


@dataclass
class Calls:
    """Calls as clients make them, and what became of them."""

    horde: HordeProcesses
    http: aiohttp.ClientSession
    answered: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    times: list[tuple[float, float]] = field(default_factory=list)
    """When each plain chat was asked, and how long it took, in seconds."""

    def ways(self) -> Iterator[Callable[[], Awaitable[None]]]:
        """The calls in turn: of twenty, twelve plain chats, five streams, two polled, one that is left."""
        return cycle(
            [self.chat, self.chat, self.stream, self.chat] * 4 + [self.poll, self.leave, self.stream, self.poll]
        )

    async def count(self, way: Callable[[], Awaitable[None]]) -> None:
        """Make one call; note how it ended."""
        name = way.__name__
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await way()
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, IndexError) as error:
            self.failed[f"{name}: {type(error).__name__} {error}"[:200]] += 1
            return
        self.answered[name] += 1

    async def chat(self) -> None:
        """A plain chat at the front."""
        began = time.monotonic()
        async with self._post(f"{self.horde.front}/v1/chat/completions", BODY) as response:
            body = await response.json()
            if not body["choices"][0]["message"]["content"]:
                raise ValueError("empty")
        self.times.append((began, time.monotonic() - began))

    async def stream(self) -> None:
        """A stream at the front, read to its end."""
        async with self._post(f"{self.horde.front}/v1/chat/completions", BODY | {"stream": True}) as response:
            events = (await response.read()).rstrip()
            if b'"error"' in events or not events.endswith(b"[DONE]"):
                raise ValueError("an error, or no end")

    async def leave(self) -> None:
        """A stream whose client hangs up after its first bytes."""
        async with self._post(f"{self.horde.front}/v1/chat/completions", SLOW) as response:
            await response.content.readany()
            response.close()

    async def poll(self) -> None:
        """A chat at the native API, polled until it is done."""
        async with self._post(f"{self.horde.native}/api/v2/generate/chat/async", BODY) as response:
            request_id = (await response.json())["id"]
        status = {"done": False}
        while not status["done"]:
            await asyncio.sleep(POLL_SECONDS)
            url = f"{self.horde.native}/api/v2/generate/chat/status/{request_id}"
            async with self.http.get(url, headers={"apikey": KEYS.demo}) as response:
                status = await response.json()

    def _post(self, url: str, body: object) -> "aiohttp.client._RequestContextManager":
        headers = {"Authorization": f"Bearer {KEYS.demo}", "apikey": KEYS.demo}
        return self.http.post(url, json=body, headers=headers, raise_for_status=True)


async def full_rate(horde: HordeProcesses) -> float:
    """Calls a second of clients that ask again at once, in the same mixture."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http, asyncio.TaskGroup() as group:
        calls = Calls(horde, http)
        ways, until = calls.ways(), time.monotonic() + FULL_SECONDS

        async def one_client() -> None:
            while time.monotonic() < until:
                await calls.count(next(ways))

        for _ in range(FULL_CLIENTS):
            group.create_task(one_client())
    return calls.answered.total() / FULL_SECONDS


async def load(horde: HordeProcesses, watch: Watch, *, rate: float, seconds: float) -> Calls:
    """Call at a steady rate, and look at everything meanwhile."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http, asyncio.TaskGroup() as group:
        calls = Calls(horde, http)
        looking = group.create_task(_look(watch))
        began = time.monotonic()
        for number, way in enumerate(calls.ways()):
            wait = began + number / rate - time.monotonic()
            if number / rate > seconds:
                break
            if wait > 0:
                await asyncio.sleep(wait)
            group.create_task(calls.count(way))
        looking.cancel()
    return calls


async def _look(watch: Watch) -> None:
    while True:
        await asyncio.to_thread(watch.look)
        await asyncio.sleep(LOOK_SECONDS)


def report(watch: Watch, calls: Calls, rate: float) -> list[str]:
    """Print what was measured; the bars that were missed."""
    missed = []
    say(f"{rate:.1f} calls a second; answered {dict(calls.answered)}, failed {dict(calls.failed) or 'none'}")
    say("of each process, second fifth → last fifth: memory of its own in MB, connections, CPU ms a call")
    for name in watch.names:
        memory, connections = Drift.of(watch.megabytes(name)), Drift.of(watch.connections(name))
        used = Drift.of([1000 * cores / rate for cores in watch.cores(name)])
        say(f"  {name:10} {memory}   {connections}   {used}")
        if memory.grew_by(MEMORY_SHARE, MEMORY_MEGABYTES):
            missed.append(f"memory of {name}: {memory}")
        if connections.grew_by(0, CONNECTIONS):
            missed.append(f"connections of {name}: {connections}")
    keys = Drift.of([float(look.redis_keys) for look in watch.looks])
    took = Drift.of([1000 * taken for _, taken in sorted(calls.times)])
    work = Drift.of([look.work_ms for look in watch.looks])
    slower = took.ratio / work.ratio
    say(f"keys in Redis {keys}; a plain chat, p50 in ms {took}; fixed work, ms of CPU {work}; {slower:.2f} times")
    if slower > SLOWER:
        missed.append(f"a plain chat takes longer: {took}, fixed work {work}")
    missed += [f"{times} calls: {why}" for why, times in calls.failed.items()]
    return missed


def draw(watch: Watch, calls: Calls, folder: Path) -> None:
    """Write the plots."""
    minutes = watch.minutes()
    memory = [Line(name, list(zip(minutes, watch.megabytes(name), strict=True))) for name in MAIN]
    links = [Line(name, list(zip(minutes, watch.connections(name), strict=True))) for name in MAIN]
    (folder / "soak-memory.svg").write_text(plot(memory, "minutes", "MB of its own"))
    (folder / "soak-connections.svg").write_text(plot(links, "minutes", "TCP connections"))
    began = min(asked for asked, _ in calls.times)
    by_minute: dict[int, list[float]] = {}
    for asked, taken in calls.times:
        by_minute.setdefault(int((asked - began) // 60), []).append(1000 * taken)
    p50 = [(minute + 1.0, statistics.median(times)) for minute, times in sorted(by_minute.items())]
    p95 = [(minute + 1.0, sorted(times)[int(0.95 * len(times))]) for minute, times in sorted(by_minute.items())]
    work = [(minute, look.work_ms) for minute, look in zip(minutes, watch.looks, strict=True)]
    lines = [Line("p50", p50), Line("p95", p95), Line("fixed work", work)]
    (folder / "soak-latency.svg").write_text(plot(lines, "minutes", "ms of a plain chat"))


def say(line: str) -> None:
    """Print at once: the run is long."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the soak."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--share", type=float, default=0.5, help="of what the horde can do")
    parser.add_argument("--plots", type=Path, help="folder for the plots")
    options = parser.parse_args()
    with LocalServices(DURABLE) as services:
        horde = start(services, Path(tempfile.mkdtemp(prefix="horde-bench-")), OWN)
        try:
            start_flower(horde)
            full = asyncio.run(full_rate(horde))
            say(f"full load: {full:.1f} calls a second")
            watch, used = Watch(horde), used_by(horde)
            calls = asyncio.run(load(horde, watch, rate=options.share * full, seconds=60 * options.minutes))
            spent = spent_since(used, used_by(horde))
            missed = report(watch, calls, options.share * full)
            parts = ", ".join(f"{name} {1000 * each / calls.answered.total():.1f}" for name, each in spent.items())
            say(f"CPU ms a call: {1000 * sum(spent.values()) / calls.answered.total():.1f} ({parts})")
            if options.plots is not None:
                draw(watch, calls, options.plots)
            horde.require_sound(REST_SECONDS)
            say("every invariant holds")
        finally:
            horde.close()
    for each in missed:
        say(f"missed: {each}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
