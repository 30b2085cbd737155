"""A task process goes on with its queue whatever becomes of Redis while a task runs or ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from app.domain.task_names import Queue
from tests.support.fifo_tasks import NAME, let_go
from tests.support.horde import ROOT
from tests.support.services import LocalServices, RunningService, wait_until

LOST_ACKNOWLEDGEMENT = "Couldn't ack"
LOST_CONNECTION = "Connection to broker lost"
POOLS = {"prefork": 1, "threads": 2}


@pytest.fixture
def redis(services: LocalServices) -> Iterator[RunningService]:
    own = services.make_redis("frozen-redis")
    own.start()
    yield own
    own.stop()


@contextmanager
def task_process(redis: RunningService, log: Path, pool: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves the queue of verdicts, by the horde's own settings."""
    words = ["-m", "celery", "--app", "tests.support.fifo_tasks", "worker", "--queues", Queue.VERDICT.value]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, *words, "--pool", pool, "--concurrency", str(POOLS[pool])],
            cwd=ROOT,
            env=os.environ | {"REDIS_URL": redis.service.url, "DATABASE_URL": "postgresql://nobody@127.0.0.1/none"},
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Sender:
    """Sends tasks, each of which waits at a fifo of its own."""

    def __init__(self, redis: RunningService, folder: Path) -> None:
        self._url = redis.service.url
        self._folder = folder
        self._sent = 0

    def send(self) -> Path:
        """Send one; its fifo."""
        self._sent += 1
        fifo = self._folder / f"{self._sent}.fifo"
        os.mkfifo(fifo)
        environment = os.environ | {"REDIS_URL": self._url, "DATABASE_URL": "postgresql://nobody@127.0.0.1/none"}
        code = f"from tests.support.fifo_tasks import app; app.send_task({NAME!r}, [{str(fifo)!r}])"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=30)
        return fifo


@pytest.mark.parametrize("pool", POOLS)
def test_acknowledgements_that_a_frozen_redis_did_not_take_cost_no_place(
    redis: RunningService, tmp_path: Path, pool: str
) -> None:
    log, sender = tmp_path / "worker.log", Sender(redis, tmp_path)
    with task_process(redis, log, pool):
        running = [sender.send() for _ in range(POOLS[pool])]
        with Redis.from_url(redis.service.url) as client:
            wait_until(lambda: client.llen(Queue.VERDICT.value) == 0, 30, f"the tasks are not taken, see {log}")
        with redis.frozen():
            for fifo in running:
                wait_until(lambda fifo=fifo: let_go(fifo), 30, f"the task does not run, see {log}")  # type: ignore[misc]
            # Once the connection is lost, the other threads' acknowledgements end with it, unnamed.
            wait_until(lambda: LOST_ACKNOWLEDGEMENT in log.read_text(), 30, "every acknowledgement was taken")
        for fifo in [sender.send() for _ in range(POOLS[pool])]:
            wait_until(lambda fifo=fifo: let_go(fifo), 30, f"the queue is not served any more, see {log}")  # type: ignore[misc]


@pytest.mark.parametrize("pool", POOLS)
def test_a_redis_that_goes_away_in_the_middle_of_a_task_ends_no_process(
    redis: RunningService, tmp_path: Path, pool: str
) -> None:
    log, sender = tmp_path / "worker.log", Sender(redis, tmp_path)
    with task_process(redis, log, pool) as process:
        running = sender.send()
        with Redis.from_url(redis.service.url) as client:
            wait_until(lambda: client.llen(Queue.VERDICT.value) == 0, 30, f"the task is not taken, see {log}")
        redis.stop()
        wait_until(lambda: LOST_CONNECTION in log.read_text(), 30, "the process does not notice")
        redis.start()
        wait_until(lambda: let_go(running), 30, f"the task does not run, see {log}")
        later = sender.send()
        wait_until(lambda: let_go(later), 30, f"the queue is not served any more, see {log}")
        assert process.poll() is None
