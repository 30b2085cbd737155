"""What a completion costs when its processes are replicated, beside the same load on one of each.

    python -m bench.scale [--web 3] [--front 2] [--celery 2] [--clients 32] [--seconds 10] [--rounds 2]

Starts a throw-away horde of one process each, and then one with so many web processes, fronts and
replicas of each Celery process (verdict, tasks) on the same machine. Every front knows every web
process; clients and workers spread over the fronts. One machine has no more cores for more
processes, so completions a second say little here: what counts is the CPU of one completion.
Where it stays the same, so many times the machines serve so many times the requests.
"""

import argparse
import asyncio
import itertools
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import aiohttp

from bench.cpu import spent_since, used_by
from bench.databases import create_database
from bench.held_pop import ready
from bench.load import closed_loop
from bench.report import Figure, tell
from bench.roundtrip import AS_SHIPPED, DURABLE, complete
from tests.support.horde import HordeProcesses
from tests.support.services import LocalServices, free_port, wait_until

START_SECONDS = 60.0
WARM_UP_SECONDS = 3.0
OURS = frozenset({"bench", "backend", "worker"})
"""What is no part of the horde's cost."""


LISTENING = {"web": "HORDE_NATIVE_PORT", "front": "HORDE_FRONT_PORT"}


class Scaled:
    """A horde with replicas: so many of each name in `counts`."""

    def __init__(self, services: LocalServices, folder: Path, counts: Mapping[str, int]) -> None:
        own: dict[str, dict[str, str]] = {}
        url = create_database(services, f"horde_scale_{uuid4().hex[:8]}")
        self.horde = HordeProcesses(services, url, folder, AS_SHIPPED, own)
        self._roots = {"web": [self.horde.native], "front": [self.horde.front]}
        self._replicas = [f"{name}{number}" for name, count in counts.items() for number in range(2, count + 1)]
        for replica in self._replicas:
            name = replica.rstrip("0123456789")
            own[replica] = {"HORDE_INSTANCE": replica.removeprefix(name)}
            if name in LISTENING:
                port = free_port()
                own[replica][LISTENING[name]] = str(port)
                self._roots[name].append(f"http://127.0.0.1:{port}")
        for front in ("front", *(replica for replica in self._replicas if replica.startswith("front"))):
            own.setdefault(front, {})["NATIVE_URLS"] = ",".join(self._roots["web"])
        self._fronts = itertools.cycle(self._roots["front"])

    def start(self) -> None:
        """Start everything and wait until it is ready."""
        self.horde.start_all()
        for replica in self._replicas:
            self.horde.start(replica)
        for root in self._roots["web"] + self._roots["front"]:
            wait_until(lambda root=root: ready(root), START_SECONDS, f"{root} is not ready")  # type: ignore[misc]

    async def complete(self, session: aiohttp.ClientSession) -> None:
        """Ask the next front for one completion."""
        await complete(next(self._fronts), session)


def cost(services: LocalServices, counts: Mapping[str, int], clients: int, seconds: float) -> float:
    """Milliseconds of CPU that one completion costs with so many processes; prints them by name."""
    folder = Path(tempfile.mkdtemp(prefix="horde-bench-"))
    scaled = Scaled(services, folder, counts)
    try:
        scaled.start()
        asyncio.run(closed_loop(scaled.complete, clients=clients, seconds=WARM_UP_SECONDS))
        before = used_by(scaled.horde)
        figures = asyncio.run(closed_loop(scaled.complete, clients=clients, seconds=seconds))
        spent = by_name(spent_since(before, used_by(scaled.horde)), figures.calls + clients)
        scaled.horde.require_sound(60)
    finally:
        scaled.horde.close()
    total = sum(milliseconds for name, milliseconds in spent.items() if name not in OURS)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    print(f"  {figures}")
    print(f"  CPU ms a completion: {total:.1f} ({', '.join(f'{name} {each:.1f}' for name, each in spent.items())})")
    return total


def by_name(spent: Mapping[str, float], completions: int) -> dict[str, float]:
    """Milliseconds a completion of all processes of a name together, most first."""
    sums: dict[str, float] = defaultdict(float)
    for name, seconds in spent.items():
        sums[name.rstrip("0123456789")] += 1000 * seconds / completions
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--web", type=int, default=3)
    parser.add_argument("--front", type=int, default=2)
    parser.add_argument("--celery", type=int, default=2, help="of verdict and of tasks")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=2, help="of both, in turn; the cheapest of each counts")
    options = parser.parse_args()
    many = {"web": options.web, "front": options.front, "verdict": options.celery, "tasks": options.celery}
    with LocalServices(DURABLE) as services:
        costs = [
            [cost(services, counts, options.clients, options.seconds) for counts in (dict.fromkeys(many, 1), many)]
            for _ in range(options.rounds)
        ]
    one, replicated = map(min, zip(*costs, strict=True))
    tell(Figure("scale", replicated / one))
    print(f"a completion costs {replicated / one:.2f} times as much with replicas")


if __name__ == "__main__":
    main()
