"""How long a request waits for a worker whose pop is held, and what held pops and a long queue cost.

    python -m bench.held_pop [--jobs 300] [--held 1000] [--queued 10000]

Starts a throw-away horde without the example worker. Prints the time from a submit's
answer to the job in a held pop's answer beside a bare publish and receive on the same
Redis, the front's memory for each of many held pops, and the processors' time that a long
queue costs while nothing happens.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path
from uuid import uuid4

import aiohttp
import psutil
import redis.asyncio

from app.services.local_accounts import ensure_local_accounts
from bench.databases import create_database
from bench.report import Figure, tell
from bench.roundtrip import AS_SHIPPED, DURABLE
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import LocalServices, wait_until

PROCESSES = ("web", "front", "verdict", "tasks", "beat")
SETTLING_SECONDS = 3.0
IDLE_SECONDS = 10.0


def declaration(model: str, wait: int) -> dict[str, object]:
    """What a bridge that serves one model sends."""
    return {"name": f"bench {model}", "models": [model], "max_length": 512, "max_context_length": 8192, "wait": wait}


class Bench:
    """Calls to one horde."""

    def __init__(self, horde: HordeProcesses, session: aiohttp.ClientSession) -> None:
        self.horde = horde
        self.session = session

    async def post(self, root: str, path: str, body: object, key: str) -> dict[str, object]:
        """Call a native route by one of its doors."""
        url, headers = f"{root}/api/v2/generate/text/{path}", {"apikey": key}
        async with self.session.post(url, json=body, headers=headers) as response:
            answer: dict[str, object] = await response.json()
            return answer

    async def held(self, model: str) -> float:
        """Hold a pop and return when its job came."""
        answer = await self.post(self.horde.front, "pop", declaration(model, 20), KEYS.worker)
        arrived = time.perf_counter()
        assert answer["id"] is not None
        await self.post(
            self.horde.native, "submit", {"id": answer["id"], "generation": "x", "state": "ok"}, KEYS.worker
        )
        return arrived

    async def latencies(self, jobs: int) -> list[float]:
        """Milliseconds from each submit's answer to its job."""
        took = []
        for _ in range(jobs):
            waiting = asyncio.create_task(self.held("held"))
            await asyncio.sleep(0.05)
            await self.post(self.horde.native, "async", {"prompt": "x", "models": ["held"]}, KEYS.demo)
            queued = time.perf_counter()
            took.append(1000 * max(0.0, await waiting - queued))
        return sorted(took)

    async def memory(self, pops: int) -> float:
        """The front's kilobytes for each of so many held pops."""
        front = psutil.Process(self.horde.running["front"].pid)
        before = resident(front)
        waiting = [
            asyncio.create_task(self.post(self.horde.front, "pop", declaration(f"idle-{n}", 25), KEYS.worker))
            for n in range(pops)
        ]
        await asyncio.sleep(15)
        used = (resident(front) - before) / 1024 / pops
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return used


def resident(process: psutil.Process) -> int:
    """Memory of a process and its children."""
    return sum(int(each.memory_info().rss) for each in (process, *process.children(recursive=True)))


def processor_seconds(horde: HordeProcesses) -> float:
    """Processor time of all processes of ours so far."""
    total = 0.0
    for started in horde.running.values():
        process = psutil.Process(started.pid)
        for each in (process, *process.children(recursive=True)):
            times = each.cpu_times()
            total += times.user + times.system
    return total


def idle_share(horde: HordeProcesses) -> float:
    """The share of one core that the processes use while nothing happens."""
    time.sleep(SETTLING_SECONDS)
    before = processor_seconds(horde)
    time.sleep(IDLE_SECONDS)
    return (processor_seconds(horde) - before) / IDLE_SECONDS


async def bare_publish(url: str, times: int) -> float:
    """p50 in milliseconds of a publish and its receipt."""
    client = redis.asyncio.Redis.from_url(url)
    listener = client.pubsub()
    await listener.subscribe("bench")
    took = []
    for _ in range(times):
        started = time.perf_counter()
        await client.publish("bench", b"x")
        while await listener.get_message(ignore_subscribe_messages=True, timeout=1) is None:
            pass
        took.append(1000 * (time.perf_counter() - started))
    await listener.aclose()  # type: ignore[no-untyped-call]
    await client.aclose()
    return statistics.median(took)


async def measure(horde: HordeProcesses, services: LocalServices, jobs: int, held: int) -> None:
    """Print latency and memory."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        bench = Bench(horde, session)
        await bench.latencies(20)
        took = await bench.latencies(jobs)
        bare = await bare_publish(services.redis_url, 300)
        p50, p95 = statistics.median(took), took[int(0.95 * len(took))]
        tell(Figure("popped_p50", p50, p50 / bare), Figure("popped_p95", p95, p95 / bare))
        print(
            f"queued to popped  p10 {took[len(took) // 10]:.2f}"
            f"  p50 {p50:.2f}  p95 {p95:.2f} ms"
            f"   bare publish {bare:.2f} ms  ratio {p50 / bare:.1f}"
        )
        each = await bench.memory(held)
        tell(Figure("held_kilobytes", each))
        print(f"{held} held pops    {each:.1f} kB each")


def fill(horde: HordeProcesses, queued: int) -> None:
    """Put requests into the queue that nobody serves."""
    body = json.dumps({"params": {"max_length": 80, "max_context_length": 2048}})
    horde.query(
        """
        WITH made AS (
            INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length,
                max_context_length, context_tokens, job_ttl_seconds, conformance, quote, waiting, sort_key, expires_at)
            SELECT gen_random_uuid(), user_id, false, 'queued', class_id, requirements, max_length,
                max_context_length, 10, 150, 'best_effort', 1000, 1, i, now() + interval '1 hour'
            FROM generate_series(1, :queued) i, (SELECT * FROM horde_requests LIMIT 1) one
            RETURNING id, user_id, class_id, sort_key, max_length, max_context_length
        ), bodies AS (
            INSERT INTO request_bodies (request_id, contract, prompt, submitted_prompt)
            SELECT id, CAST(:body AS jsonb), 'x', 'x' FROM made
        )
        INSERT INTO queue_entries (request_id, user_id, class_id, sort_key, max_length, max_context_length, images,
            tools)
        SELECT id, user_id, class_id, sort_key, max_length, max_context_length, 0, 0 FROM made
        """,
        queued=queued,
        body=body,
    )


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--held", type=int, default=1000)
    parser.add_argument("--queued", type=int, default=10_000)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=f"horde-bench-{uuid4().hex[:8]}-"))
    with LocalServices(DURABLE) as services:
        horde = HordeProcesses(services, create_database(services), folder, AS_SHIPPED)
        try:
            start(horde)
            asyncio.run(measure(horde, services, options.jobs, options.held))
            empty = idle_share(horde)
            fill(horde, options.queued)
            full = idle_share(horde)
            tell(Figure("idle_queue", full - empty))
            print(f"{options.queued} queued      {full - empty:.3f} of a core more than an empty queue ({empty:.3f})")
        finally:
            horde.close()


def start(horde: HordeProcesses) -> None:
    """Start every process but a worker, and wait until both faces are ready."""
    ensure_local_accounts(horde.settings, KEYS)
    for name in PROCESSES:
        horde.start(name)
    for face in (horde.native, horde.front):
        wait_until(lambda face=face: ready(face), 40, f"{face} is not ready")  # type: ignore[misc]


def ready(face: str) -> bool:
    """Whether a face says that it is ready."""
    try:
        with urllib.request.urlopen(f"{face}/readyz", timeout=2) as response:  # noqa: S310 - a URL of ours
            return bool(response.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    main()
