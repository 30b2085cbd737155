"""A task process goes on with its queue whatever becomes of Redis while a task runs or ends."""

from pathlib import Path

import pytest
from redis import Redis

from app.domain.task_names import Queue
from tests.support.fifo_tasks import let_go
from tests.support.services import RunningService, wait_until
from tests.support.task_process import Sender, task_process

LOST_ACKNOWLEDGEMENT = "Couldn't ack"
LOST_CONNECTION = "Connection to broker lost"
POOLS = {"prefork": 1, "threads": 2}


@pytest.mark.parametrize("pool", POOLS)
def test_acknowledgements_that_a_frozen_redis_did_not_take_cost_no_place(
    redis: RunningService, tmp_path: Path, pool: str
) -> None:
    log, sender = tmp_path / "worker.log", Sender(redis, tmp_path)
    with task_process(redis, log, pool, POOLS[pool]):
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
    with task_process(redis, log, pool, POOLS[pool]) as process:
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
