"""Children that Celery forks share no connection to the database with their parent (reliability A13)."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from app.domain.task_names import Queue
from tests.support.horde import ROOT
from tests.support.services import LocalServices, RunningService, wait_until

NAME = "tests.ask_and_compare"
CHILDREN = 4


@pytest.fixture
def parent(services: LocalServices, redis: RunningService, database_url: str, tmp_path: Path) -> Iterator[Path]:
    """What a process says whose parent asked the database before it forked; it serves the queue of verdicts."""
    log = tmp_path / "worker.log"
    environment = services.environment | {"DATABASE_URL": database_url, "REDIS_URL": redis.service.url}
    words = ["-m", "celery", "--app", "tests.support.forked_tasks", "worker", "--queues", Queue.VERDICT.value]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, *words, "--concurrency", str(CHILDREN)],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    yield log
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_four_children_get_their_own_answers_although_their_parent_asked_first(
    parent: Path, redis: RunningService, tmp_path: Path
) -> None:
    with Celery("sender", broker=redis.service.url, set_as_current=False) as sender:
        for number in range(CHILDREN):
            sender.send_task(NAME, [str(tmp_path), f"tag{number}"], queue=Queue.VERDICT.value, ignore_result=True)

    def answers() -> list[str]:
        return [path.read_text() for path in tmp_path.glob("*.wrong")]

    wait_until(lambda: len(answers()) == CHILDREN, 60, f"the tasks do not end, see {parent}")
    assert answers() == ["0"] * CHILDREN
