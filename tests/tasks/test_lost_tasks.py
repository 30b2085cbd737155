"""What becomes of running tasks when their child dies or their process is told to stop (reliability A2, A3, A9)."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.fifo_tasks import RETRIES, begun, let_go
from tests.support.services import RunningService, wait_until
from tests.support.task_process import Sender, task_process

SOFT_SHUTDOWN = "Soft Shutdown"
END_SECONDS = 28
"""By then a process that is told to stop has ended: two seconds later a platform kills it."""


def test_a_task_that_kills_its_child_is_tried_again_and_then_given_up(redis: RunningService, tmp_path: Path) -> None:
    log, sender = tmp_path / "worker.log", Sender(redis, tmp_path)
    with task_process(redis, log):
        poison = sender.send()
        for attempt in range(RETRIES + 1):
            wait_until(lambda: len(begun(poison)) == attempt + 1, 30, f"no attempt {attempt}, see {log}")  # noqa: B023
            os.kill(begun(poison)[-1], signal.SIGKILL)
        # One child serves the queue: while the poison runs for ever, nothing else does.
        for _ in range(2):
            later = sender.send()
            wait_until(lambda later=later: let_go(later), 30, f"the queue is not served any more, see {log}")  # type: ignore[misc]
    assert len(begun(poison)) == RETRIES + 1


@pytest.mark.slow
def test_a_stop_leaves_tasks_their_time_and_gives_back_what_does_not_end(redis: RunningService, tmp_path: Path) -> None:
    log, sender = tmp_path / "first.log", Sender(redis, tmp_path)
    with task_process(redis, log, concurrency=2) as process:
        short, long = sender.send(), sender.send()
        wait_until(lambda: bool(begun(short) and begun(long)), 30, f"the tasks do not run, see {log}")
        told = time.monotonic()
        # As a platform does: the children hear it too.
        os.killpg(process.pid, signal.SIGTERM)
        wait_until(lambda: SOFT_SHUTDOWN in log.read_text(), 10, f"it does not stop softly, see {log}")
        wait_until(lambda: let_go(short), 10, "a running task was not left its time")
        process.wait(END_SECONDS)
        assert time.monotonic() - told < END_SECONDS
    with task_process(redis, tmp_path / "second.log"):
        wait_until(lambda: let_go(long), 30, "what did not end was not given back")
        # What is given back goes first, so by now the short one would have been begun again.
        later = sender.send()
        wait_until(lambda: let_go(later), 30, "the queue is not served any more")
    assert (len(begun(short)), len(begun(long))) == (1, 2)


def test_a_busy_process_leaves_what_waits_to_an_idle_one(redis: RunningService, tmp_path: Path) -> None:
    sender = Sender(redis, tmp_path)
    with task_process(redis, tmp_path / "busy.log"):
        held = sender.send()
        wait_until(lambda: bool(begun(held)), 30, "the first task does not run")
        waiting = [sender.send() for _ in range(3)]
        with task_process(redis, tmp_path / "idle.log"):
            for fifo in waiting:
                wait_until(lambda fifo=fifo: let_go(fifo), 30, "the busy process sits on it")  # type: ignore[misc]
            assert let_go(held)
