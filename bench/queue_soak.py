"""Forty workers share two thousand requests over HTTP while the horde's processes die under them, with figures.

    python -m bench.queue_soak [--requests 2000] [--workers 40] [--rounds 4]

Starts a throw-away horde, submits text and chat requests of mixed sizes and features, and lets
workers of mixed declarations deliver, fault, vanish and deliver late, while web, verdict and tasks
are killed by SIGKILL `rounds` times each. Prints what was handed out twice, lost, uncovered or
overtaken (nothing of it may be), and the requests a second beside those of a shorter run without kills.
"""

import argparse
import asyncio
import math
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from app.domain.system_accounts import ANONYMOUS_ID
from bench.databases import create_database
from bench.held_pop import start
from bench.roundtrip import DURABLE
from tests.support.horde import HordeProcesses
from tests.support.services import LocalServices
from tests.support.soak import Soak, SoakSize, soak
from tests.support.soak_history import History, lost, overlaps, overtaken, uncovered

BASELINE_SHARE = 5
"""The run without kills has one request in so many."""


def run(horde: HordeProcesses, size: SoakSize) -> float:
    """Run one soak, print what it came to, and return its requests a second."""
    started = time.perf_counter()
    soaked = asyncio.run(soak(horde, size))
    seconds = time.perf_counter() - started
    horde.require_sound(120)
    show(soaked, History.read(horde, soaked.run), seconds)
    return size.requests / seconds


def show(soaked: Soak, history: History, seconds: float) -> None:
    """Print a soak's figures."""
    leases = [lease for each in history.leases.values() for lease in each]
    done = sum(asked.state == "done" for asked in history.requests.values())
    first: dict[str, float] = {}
    for lease in leases:
        first[lease.request] = min(lease.popped, first.get(lease.request, math.inf))
    waited = [popped - history.requests[request].created for request, popped in first.items()]
    print(
        f"{len(history.requests)} requests, {soaked.size.workers} workers, kills {soaked.kills}: {seconds:.1f} s,"
        f" {len(history.requests) / seconds:.1f} requests/s, {len(leases)} jobs, {done} done,"
        f" {len(history.requests) - done} faulted, queued p50 {statistics.median(waited):.2f} s"
    )
    for name, found in (
        ("handed out twice at once", overlaps(history)),
        ("lost", lost(history, soaked)),
        ("not covered", uncovered(history, soaked)),
        ("overtaken", overtaken(history, soaked)),
    ):
        print(f"  {name}: {len(found)}", *found[:3], sep="\n    ", flush=True)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=4, help="how often each process is killed")
    options = parser.parse_args()
    size = SoakSize(options.requests, options.workers, options.rounds)
    folder = Path(tempfile.mkdtemp(prefix=f"horde-bench-{uuid4().hex[:8]}-"))
    with LocalServices(DURABLE) as services:
        horde = HordeProcesses(services, create_database(services), folder)
        try:
            start(horde)
            horde.query("UPDATE users SET concurrency = 1000000 WHERE id <> :anonymous", anonymous=ANONYMOUS_ID)
            calm = run(horde, replace(size, requests=max(1, size.requests // BASELINE_SHARE), rounds=0))
            stormy = run(horde, size)
            print(f"ratio of the rate with kills to the rate without: {stormy / calm:.2f}", flush=True)
        finally:
            horde.close()


if __name__ == "__main__":
    main()
