"""Sends Celery messages by name: bounded in time, never raising, ids only."""

from collections.abc import Iterable
from typing import Any

import structlog
from celery import Celery
from kombu import Connection
from kombu.entity import Queue as KombuQueue
from kombu.exceptions import ChannelError, OperationalError
from prometheus_client import Counter
from redis.exceptions import RedisError

from app.adapters.breaker import Breaker
from app.domain.task_names import Queue, TaskName
from config.metrics import begin_at_zero

REST_SECONDS = 2.0

CALL_HEADER = "horde_call_id"
"""The header of a message that carries the id of the HTTP call it comes from, for logs alone."""

MESSAGES_SENT = Counter("horde_task_messages_sent", "Celery messages sent.", ["task"])
MESSAGES_LOST = Counter("horde_task_messages_lost", "Celery messages that could not be sent.", ["task"])
begin_at_zero(MESSAGES_LOST, *(task.value for task in TaskName))

log = structlog.get_logger(__name__)


class TaskSender:
    """One process's way to Celery's broker."""

    def __init__(self, celery: Celery) -> None:
        self._celery = celery
        self._breaker = Breaker(REST_SECONDS)

    def send(self, task: TaskName, *arguments: str) -> bool:
        """Send one message. False when the broker is away: the sweep sends it again."""
        if self._breaker.is_open:
            MESSAGES_LOST.labels(task.value).inc()
            return False
        try:
            self._celery.send_task(task.value, args=arguments, queue=task.queue.value, headers=_origin())
        except (OperationalError, RedisError, OSError) as error:
            self._breaker.failed()
            MESSAGES_LOST.labels(task.value).inc()
            log.warning("broker.unreachable", task=task.value, error=type(error).__name__)
            return False
        self._breaker.succeeded()
        MESSAGES_SENT.labels(task.value).inc()
        return True

    def backlog(self, queue: Queue) -> int | None:
        """Return how many messages wait in a queue; None when the broker cannot tell."""
        lengths = self.backlogs([queue])
        return None if lengths is None else lengths[queue]

    def backlogs(self, queues: Iterable[Queue]) -> dict[Queue, int] | None:
        """Return how many messages wait in each queue, over one connection; None when the broker cannot tell."""
        try:
            with self._celery.connection_for_read() as connection:
                # Its own patience would be two seconds, for a broker that says at once that it is not there.
                connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
                return {queue: _length(connection, queue) for queue in queues}
        except (OperationalError, RedisError, OSError) as error:
            log.warning("broker.unreachable", call="backlog", error=type(error).__name__)
            return None


def _origin() -> dict[str, str] | None:
    """Name the call that a message comes from, when it comes from one."""
    call_id = structlog.contextvars.get_contextvars().get("call_id")
    return None if call_id is None else {CALL_HEADER: call_id}


def _length(connection: Connection, queue: Queue) -> int:
    try:
        declared: Any = KombuQueue(queue.value, channel=connection.channel()).queue_declare(passive=True)
    except ChannelError:
        # Redis keeps no empty list, so there is no such queue while nothing waits in it.
        return 0
    return int(declared.message_count)
