"""What everybody else notices while one source asks for fifty times what it may have open.

    python -m bench.flood [--seconds 15] [--cap 8]

Starts a Valkey, a front and a small native API that delivers each reply after 100 ms. Twenty
clients at addresses of their own ask one request after the other, first alone, then beside a
source that tries to keep fifty times its cap open and heeds `Retry-After` where it is refused.
Prints the latencies of the twenty in both, their ratio, and how the flood fared.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

import aiohttp
from aiohttp import web

from bench.report import Figure, tell
from bench.streams import running_valkey
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import SUBMIT, Received, Script, ScriptedNative, finished_at_once, status_of

OTHERS = 20
TIMES_THE_CAP = 50
REPLY_SECONDS = 0.1
ASKING = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}


async def delivered(received: Received, _request: web.Request) -> web.StreamResponse:
    """Accept a request whose reply is there after a while."""
    await asyncio.sleep(REPLY_SECONDS)
    request_id = received.headers["horde-request-id"]
    return web.json_response({"id": request_id, "status": status_of(request_id, **finished_at_once())}, status=202)


class Native(ScriptedNative):
    """A native API that answers every submit so, and keeps nothing."""

    def _default(self, received: Received) -> Script:
        self.received.clear()
        return delivered if received.path == SUBMIT else super()._default(received)


class Bench:
    """Clients of one front."""

    def __init__(self, front: FrontProcess, session: aiohttp.ClientSession) -> None:
        self._url = f"{front.url}/v1/chat/completions"
        self._session = session
        self.flood: Counter[int] = Counter()

    async def ask(self, address: str) -> tuple[int, float]:
        """Ask once; status, and the seconds after which a refused client may come again."""
        async with self._session.post(self._url, json=ASKING, headers={"X-Forwarded-For": address}) as response:
            await response.read()
            return response.status, float(response.headers.get("Retry-After", "0"))

    async def others(self, seconds: float) -> list[float]:
        """Milliseconds of every request of twenty clients, sorted."""
        until, took = time.perf_counter() + seconds, list[float]()

        async def one(number: int) -> None:
            while (started := time.perf_counter()) < until:
                status, _ = await self.ask(f"198.51.100.{number}")
                assert status == 200
                took.append(1000 * (time.perf_counter() - started))

        await asyncio.gather(*(one(number) for number in range(OTHERS)))
        return sorted(took)

    async def insist(self) -> None:
        """One of the flood's clients: it asks for ever."""
        await asyncio.sleep(random.uniform(0, 5))  # noqa: S311 - spreads the start
        while True:
            status, pause = await self.ask("192.0.2.1")
            self.flood[status] += 1
            await asyncio.sleep(pause)


def told(name: str, took: list[float]) -> float:
    """Print latencies; returns their p95."""
    p95 = took[int(0.95 * len(took))]
    print(f"{name:6} p50 {statistics.median(took):.1f}  p95 {p95:.1f}  max {took[-1]:.1f} ms   {len(took)} requests")
    return p95


async def measure(front: FrontProcess, options: argparse.Namespace) -> None:
    """Run everything and print it."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        bench = Bench(front, session)
        await bench.others(3)
        quiet = told("quiet", await bench.others(options.seconds))
        flood = [asyncio.create_task(bench.insist()) for _ in range(options.cap * TIMES_THE_CAP)]
        await asyncio.sleep(5)
        bench.flood.clear()
        loud = told("flood", await bench.others(options.seconds))
        print(f"ratio {loud / quiet:.2f}   the flood: {bench.flood[200]} answered, {bench.flood[503]} refused")
        tell(Figure("flooded", loud / quiet))
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--cap", type=int, default=8)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="horde-bench-"))
    settings = {"FRONT_SOURCE_LIMIT": str(options.cap), "TRUSTED_PROXIES": "1"}
    with running_valkey(folder) as url, Native() as native, running_front(folder, native.url, url, **settings) as front:
        wait_for_redis(front)
        asyncio.run(measure(front, options))


if __name__ == "__main__":
    main()
