"""One Celery process under the horde's own settings, whose tasks wait until a test lets each of them go."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.domain.task_names import Queue
from tests.support.fifo_tasks import NAME
from tests.support.horde import ROOT
from tests.support.services import RunningService

NO_DATABASE = "postgresql://nobody@127.0.0.1/none"


def environment_of(redis: RunningService) -> dict[str, str]:
    """What such a process needs, as the deployments set it."""
    return os.environ | {"REDIS_URL": redis.service.url, "DATABASE_URL": NO_DATABASE, "REMAP_SIGTERM": "SIGQUIT"}


@contextmanager
def task_process(
    redis: RunningService, log: Path, pool: str = "prefork", concurrency: int = 1
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves the queue of verdicts, in a group of its own."""
    words = ["-m", "celery", "--app", "tests.support.fifo_tasks", "worker", "--queues", Queue.VERDICT.value]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, *words, "--pool", pool, "--concurrency", str(concurrency), "--hostname", f"{log.stem}@%h"],
            cwd=ROOT,
            env=environment_of(redis),
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Sender:
    """Sends tasks, each of which waits at a fifo of its own."""

    def __init__(self, redis: RunningService, folder: Path) -> None:
        self._environment = environment_of(redis)
        self._folder = folder
        self._sent = 0

    def send(self) -> Path:
        """Send one; its fifo."""
        self._sent += 1
        fifo = self._folder / f"{self._sent}.fifo"
        os.mkfifo(fifo)
        code = f"from tests.support.fifo_tasks import app; app.send_task({NAME!r}, [{str(fifo)!r}])"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=self._environment, check=True, timeout=30)
        return fifo
