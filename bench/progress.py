"""What progress costs: posts a second of one web process, beside bare Redis and a bare call of the same server.

    python -m bench.progress [--seconds 10] [--clients 1 16 32]

Starts one web process over throw-away services, writes leases straight into Redis, and lets each
client post for a job of its own, as fast as it is answered. Prints posts a second and two ratios:
to calls of `/healthz` that the same process answers with nothing to do, and to XADD and XREAD of
the same entry over one bare connection to the same Redis. One web process must take 900 a second.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path
from uuid import UUID, uuid4

import aiohttp
from redis import Redis

from app.adapters.leases import LeaseStore, NewLease
from app.domain.progress_entries import ProgressEntry
from app.services.accounts import digest
from bench.databases import create_database
from bench.load import Figures, closed_loop
from bench.report import Figure, tell
from config.settings import Settings
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import LocalServices

DURABLE: dict[str, str] = {}
BAR = 900
POSTS_A_LEASE = 2_000
DELTA = "about a second of text, at some thirty tokens each second, is as long as this line is. " * 2


class Jobs:
    """Leased jobs, a new one whenever the last has posted much, so that streams stay as long as real ones."""

    def __init__(self, leases: LeaseStore) -> None:
        self._leases = leases
        self._sequence: Iterator[int] = iter(())
        self._id = uuid4()

    def next_post(self) -> tuple[UUID, int]:
        """The next post's job and sequence number."""
        seq = next(self._sequence, None)
        if seq is None:
            self._open()
            seq = next(self._sequence)
        return self._id, seq

    def _open(self) -> None:
        self._id, self._sequence = uuid4(), iter(range(POSTS_A_LEASE))
        lease = NewLease(
            model="bench",
            generation_id=self._id,
            request_id=uuid4(),
            key_digest=digest(KEYS.worker),
            streamed=True,
            max_bytes=2**30,
            life_seconds=600,
        )
        if self._leases.open(lease) is None:
            raise RuntimeError("Redis is away")


async def posting(horde: HordeProcesses, leases: LeaseStore, *, clients: int, seconds: float) -> Figures:
    """Let each client post for a job of its own."""
    jobs = cycle([Jobs(leases) for _ in range(clients)])
    mine: dict[asyncio.Task[None] | None, Jobs] = {}

    async def post(session: aiohttp.ClientSession) -> None:
        task = asyncio.current_task()
        job = mine.get(task) or mine.setdefault(task, next(jobs))
        generation_id, seq = job.next_post()
        body = {"id": str(generation_id), "seq": seq, "delta": DELTA}
        url = f"{horde.native}/api/v2/generate/text/progress"
        async with session.post(url, json=body, headers={"apikey": KEYS.worker}) as answer:
            if answer.status != 200:
                raise RuntimeError(f"{answer.status}: {await answer.text()}")
            await answer.read()

    return await closed_loop(post, clients=clients, seconds=seconds)


async def greeting(horde: HordeProcesses, *, clients: int, seconds: float) -> Figures:
    """Let each client call a route of the same process that has nothing to do."""

    async def hello(session: aiohttp.ClientSession) -> None:
        async with session.get(f"{horde.native}/healthz") as answer:
            await answer.read()

    return await closed_loop(hello, clients=clients, seconds=seconds)


def bare_redis(redis: Redis, seconds: float) -> float:
    """Round trips a second of adding an entry and reading it, one after the other."""
    entry = ProgressEntry(generation_id=str(uuid4()), seq=0, delta=DELTA).encode()
    redis.delete("bench")
    last: bytes | str = b"0"
    began = time.perf_counter()
    for done in count(1):
        redis.execute_command("XADD", "bench", "*", *(part for field in entry.items() for part in field))  # type: ignore[no-untyped-call]
        found = redis.execute_command("XREAD", "STREAMS", "bench", last)  # type: ignore[no-untyped-call]
        last = found[0][1][-1][0]
        if time.perf_counter() - began >= seconds:
            return done / (time.perf_counter() - began)
    raise AssertionError


def main() -> None:
    """Run the bench; exit code 1 when the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 32])
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=f"horde-bench-{uuid4().hex[:8]}-"))
    with LocalServices(DURABLE) as services:
        url = create_database(services)
        leases = LeaseStore(Settings(_env_file=None, database_url=url, redis_url=services.redis_url))
        horde = HordeProcesses(services, url, folder)
        try:
            horde.start("web")
            horde.wait_web()
            best, share = 0.0, 0.0
            for clients in options.clients:
                hello = asyncio.run(greeting(horde, clients=clients, seconds=3))
                with Redis.from_url(services.redis_url) as redis:
                    redis_rate = bare_redis(redis, 1)
                posts = asyncio.run(posting(horde, leases, clients=clients, seconds=options.seconds))
                if posts.per_second > best:
                    best, share = posts.per_second, posts.per_second / hello.per_second
                print(f"progress  {posts}")
                for label, rate in (("healthz", hello.per_second), ("XADD+XREAD", redis_rate)):
                    print(f"          {label} {rate:7.1f}/s  ratio {posts.per_second / rate:.3f}")
        finally:
            horde.close()
            leases.close()
    tell(Figure("posts", best, share))
    print(f"best {best:.0f} posts a second, at least {BAR}")
    raise SystemExit(best < BAR)


if __name__ == "__main__":
    main()
