"""Two of each process behind nginx, under load, while one of them is killed at random every ten seconds.

    python -m bench.replicas [--seconds 300] [--seed 1]

Starts a throw-away horde with the files of `deploy/` and the settings as they come, and asks for plain
and streamed completions and for texts. Prints what became of them. Needs nginx.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from uuid import uuid4

from bench.databases import create_database
from bench.roundtrip import DURABLE
from tests.support.replica_kills import Kills, Seen, load_with_kills
from tests.support.replica_load import Load
from tests.support.replicas import AS_SHIPPED, NGINX, ReplicatedHorde
from tests.support.services import LocalServices


def show(seen: Seen, horde: ReplicatedHorde) -> None:
    """Print what happened."""
    outcomes = seen.outcomes
    kills = ", ".join(f"{name} {times}" for name, times in sorted(seen.killed.items()))
    print(f"killed {seen.killed.total()}: {kills}")
    print(f"completed {outcomes.completed}: {dict(outcomes.counts)}, slowest {outcomes.slowest:.1f} s")
    for name, said in (
        ("failed", outcomes.failed),
        ("cut in mid-stream", outcomes.cut),
        ("asked again because the front said so", outcomes.repeated),
    ):
        print(f"{name}: {len(said)}", *said, sep="\n    ")
    print(f"asked once and stored twice: {len(seen.stored_twice(horde))}", flush=True)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if NGINX is None:
        parser.exit(2, "This machine has no nginx.\n")
    folder = Path(tempfile.mkdtemp(prefix=f"horde-bench-{uuid4().hex[:8]}-"))
    with LocalServices(DURABLE) as services:
        horde = ReplicatedHorde(services, create_database(services), folder, AS_SHIPPED)
        try:
            horde.start_all()
            seen = asyncio.run(load_with_kills(horde, Load(), Kills(options.seconds, seed=options.seed)))
            show(seen, horde)
            horde.require_sound(240)
        finally:
            horde.close()


if __name__ == "__main__":
    main()
