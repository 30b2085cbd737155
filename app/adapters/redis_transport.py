"""Celery's transport on Redis, without a defect of kombu 5.7 that ends task processes.

A channel outlives its connection: messages that were taken through it are acknowledged, or given back
to their queue, when their task has ended or the connection is closed for the second time. kombu then
looks for the address of a connection that is no more, and the AttributeError ends the process. Here it
is what it is, a connection that is lost: Celery logs it and goes on. The visibility timeout gives the
message back, and the row says long before that what is to be done.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import ConnectionError as RedisConnectionError


class Channel(redis.Channel):
    """A channel that says so when its connection is gone."""

    def _connparams(self, asynchronous: bool = False) -> Any:
        if self.connection is None or self.connection.client is None:
            raise RedisConnectionError("The connection of this channel was closed.")
        return super()._connparams(asynchronous)  # type: ignore[misc]  # kombu's stubs leave it out


class Transport(redis.Transport):
    """A transport of such channels."""

    Channel = Channel


def use_for_redis() -> None:
    """Let URLs of Redis mean this transport in this process."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{Transport.__name__}"
