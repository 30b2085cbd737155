"""How long a worker's submit of a chat waits for its verdict, beside a bare round trip through Celery.

    python -m bench.verdict [--jobs 300]

Starts a throw-away horde without the example worker. One worker pops and submits one job
after the other; timed is the submit alone, whose answer holds the verdict. The baseline, in
the same run on the same Redis, is a Celery process that answers each message at once with an
entry in a list that the sender waits on.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
from redis import Redis

from bench import no_op
from bench.databases import create_database
from bench.held_pop import start
from bench.report import Figure, tell
from bench.roundtrip import AS_SHIPPED, DURABLE
from tests.support.hand_worker import EVERYTHING
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import LocalServices

MODEL = "bench-verdict"
WARM_UP = 20
REPLY = {"message": {"content": "A reply of some words. " * 10}, "finish_reason": "stop", "state": "ok"}
WAIT_SECONDS = 20.0


@contextmanager
def no_op_process(redis_url: str) -> Iterator[None]:
    """A Celery process with one child, as the horde's verdict process has it."""
    words = ["-m", "celery", "--app", "bench.no_op", "worker", "--concurrency", "1", "--queues", no_op.QUEUE]
    process = subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | {no_op.VARIABLE: redis_url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def bare(redis_url: str, times: int) -> float:
    """p50 in milliseconds from sending a message that does nothing to its answer."""
    took = []
    application = no_op.application(redis_url)
    with no_op_process(redis_url), Redis.from_url(redis_url, socket_timeout=WAIT_SECONDS + 1) as redis:
        for _ in range(times + WARM_UP):
            key = uuid4().hex
            began = time.perf_counter()
            application.send_task(no_op.TASK, args=[key], queue=no_op.QUEUE)
            if redis.blpop([key], timeout=WAIT_SECONDS) is None:
                raise RuntimeError("the bare task was not run")
            took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took[WARM_UP:])


async def verdicts(horde: HordeProcesses, jobs: int) -> list[float]:
    """Milliseconds of each submit whose answer is its verdict."""
    declaration = {
        "name": MODEL,
        "models": [MODEL],
        "model_id": MODEL,
        "chat_jobs": True,
        "prompt_jobs": False,
        "chat_features": EVERYTHING,
        "max_length": 512,
        "max_context_length": 8192,
        "wait": 0,
    }
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "Hello, horde. " * 20}], "max_tokens": 64}
    took = []
    async with aiohttp.ClientSession() as session:

        async def post(path: str, body: Any, key: str) -> Any:
            url = f"{horde.native}/api/v2/generate/{path}"
            async with session.post(url, json=body, headers={"apikey": key}) as answer:
                found = await answer.json()
                if answer.status not in {200, 202}:
                    raise RuntimeError(f"{answer.status} {path}: {found}")
                return found

        await post("text/pop", declaration, KEYS.worker)
        for number in range(jobs + WARM_UP):
            await post("chat/async", asked, KEYS.demo)
            job = await post("text/pop", declaration, KEYS.worker)
            began = time.perf_counter()
            answer = await post("text/submit", REPLY | {"id": job["id"]}, KEYS.worker)
            if "reward" not in answer:
                raise RuntimeError(f"no verdict: {answer}")
            if number >= WARM_UP:
                took.append(1000 * (time.perf_counter() - began))
    return sorted(took)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=300)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="horde-bench-"))
    with LocalServices(DURABLE) as services:
        horde = HordeProcesses(services, create_database(services), folder, AS_SHIPPED)
        try:
            start(horde)
            took = asyncio.run(verdicts(horde, options.jobs))
            baseline = bare(services.redis_url, options.jobs)
        finally:
            horde.close()
    p50 = statistics.median(took)
    tell(Figure("verdict_p50", p50, p50 / baseline))
    print(
        f"submit to verdict  p50 {p50:.2f}  p95 {took[int(0.95 * len(took))]:.2f} ms"
        f"   bare Celery round trip {baseline:.2f} ms   ratio {p50 / baseline:.2f}"
    )


if __name__ == "__main__":
    main()
