"""Hears every Celery message that is sent, so that it can be sent again: late, repeated and in another order."""

import threading
import time
from collections import deque
from uuid import uuid4

import orjson
from redis import Redis
from redis.exceptions import RedisError

from app.domain.task_names import Queue

KEPT = 200
REST_SECONDS = 0.5
SOCKET_SECONDS = 1.0
QUEUES = frozenset(queue.value for queue in Queue)


class MessageTap:
    """Listens on a Redis for as long as it is there, and again when it is back."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._kept: deque[tuple[str, bytes]] = deque(maxlen=KEPT)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def seen(self) -> list[tuple[str, bytes]]:
        """Queue and message, the latest of them."""
        return list(self._kept)

    def send(self, messages: list[tuple[str, bytes]]) -> None:
        """Put messages into their queues, each as a delivery of its own."""
        with Redis.from_url(self._url, socket_timeout=SOCKET_SECONDS) as redis:
            for queue, message in messages:
                body = orjson.loads(message)
                body["properties"]["delivery_tag"] = str(uuid4())
                redis.lpush(queue, orjson.dumps(body))

    def close(self) -> None:
        """Listen no more."""
        self._ended.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                self._listen_once()
            except (RedisError, OSError):
                time.sleep(REST_SECONDS)

    def _listen_once(self) -> None:
        with Redis.from_url(self._url, socket_timeout=SOCKET_SECONDS) as redis, redis.monitor() as monitor:
            while not self._ended.is_set():
                heard = str(monitor.next_command()["command"])
                verb, _, rest = heard.partition(" ")
                queue, _, message = rest.partition(" ")
                if verb.upper() == "LPUSH" and queue in QUEUES:
                    self._kept.append((queue, message.encode()))
