"""Throws almost-HTTP at a real front for as long as told, and counts what came back.

    python -m bench.fuzz_front --cases 100000 --seed 1

Fails on a 500, on a 5xx without a name, on a front that dies or stays busy, and prints how its
memory grew: the run is in ten parts, so that growth shows as a trend.
"""

import argparse
import asyncio
import collections
import contextlib
import logging
import random
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil

from launcher.services.valkey import Valkey
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import ScriptedNative, finished_at_once
from tests.support.raw_http import complaint, exchange, raw_request
from tests.support.services import RunningService, free_port

PARTS = 10
REST_SECONDS = 120.0
"""Longest time in which the front must come to rest."""

SPARE_DESCRIPTORS = 20
"""Connections to the native API that the front keeps."""

SETTINGS = {
    "DEFAULT_DEADLINE_SECONDS": "3",
    "BODY_READ_SECONDS": "1",
    "BODY_LIMIT_BYTES": "100000",
    "FRONT_SOURCE_LIMIT": "1000",
    "HORDE_LOG_LEVEL": "WARNING",
}


async def part(front: FrontProcess, cases: int, at_once: int, chance: random.Random) -> collections.Counter[str]:
    """Run some cases. What came back, by status; complaints by themselves."""
    port = int(front.url.rpartition(":")[2])
    seen: collections.Counter[str] = collections.Counter()
    left = iter(range(cases))

    async def run() -> None:
        for _ in left:
            raw = raw_request(chance)
            answer = await exchange("127.0.0.1", port, raw, chance)
            seen[answer[9:12].decode("latin-1") or "closed"] += 1
            if (wrong := complaint(answer)) is not None:
                seen[f"WRONG {wrong}"] += 1
                print(f"{wrong}: {raw[:300]!r} -> {answer[:300]!r}")

    await asyncio.gather(*(run() for _ in range(at_once)))
    return seen


def figure(front: FrontProcess, name: str) -> float:
    """A figure of the front's."""
    with urllib.request.urlopen(f"{front.url}/metrics", timeout=120) as response:  # noqa: S310 -- a URL of ours
        lines = response.read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def main() -> int:
    """Run the cases. 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    # The scripted native API would tell of each body that breaks off, which is what the cases are made of.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    chance = random.Random(chosen.seed)  # noqa: S311 -- the same bytes for the same seed
    total: collections.Counter[str] = collections.Counter()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o711)
        valkey = RunningService(Valkey(folder / "redis", free_port(), "throw-away"), folder)
        valkey.start()
        stack.callback(valkey.stop)
        native = stack.enter_context(ScriptedNative())
        native.reset()
        native.initial = finished_at_once()
        front = stack.enter_context(running_front(folder, native.url, valkey.service.url, **SETTINGS))
        wait_for_redis(front)
        process = psutil.Process(front.process.pid)
        first = process.num_fds()
        for number in range(PARTS):
            started = time.monotonic()
            seen = asyncio.run(part(front, chosen.cases // PARTS, chosen.at_once, chance))
            native.received.clear()
            native.statuses.clear()
            total += seen
            rate = chosen.cases / PARTS / (time.monotonic() - started)
            memory = process.memory_info().rss / 2**20
            print(f"part {number + 1}: {rate:.0f} cases/s, {memory:.1f} MiB, {process.num_fds()} descriptors")
        busy, left = figure(front, "horde_front_open_requests"), process.num_fds()
        deadline = time.monotonic() + REST_SECONDS
        while (busy or left > first + SPARE_DESCRIPTORS) and time.monotonic() < deadline:
            time.sleep(1)
            busy, left = figure(front, "horde_front_open_requests"), process.num_fds()
    print({name: total[name] for name in sorted(total)}, f"open at the end: {busy:g}, descriptors {first} then {left}")
    return 1 if busy or left > first + SPARE_DESCRIPTORS or any(name.startswith("WRONG") for name in total) else 0


if __name__ == "__main__":
    sys.exit(main())
