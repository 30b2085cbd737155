"""Celery's transport on Redis, without two defects of kombu 5.7.

One ends task processes. A channel outlives its connection: messages that were taken through it are
acknowledged, or given back to their queue, when their task has ended or the connection is closed for the
second time. kombu then looks for the address of a connection that is no more, and the AttributeError ends
the process. Here it is what it is, a connection that is lost: Celery logs it and goes on. The visibility
timeout gives the message back, and the row says long before that what is to be done.

The other costs time: kombu makes a new client, with a table of some 200 commands, for each command that it
sends. Here a channel makes one for each of its pools.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import ConnectionError as RedisConnectionError


class Channel(redis.Channel):
    """A channel that says so when its connection is gone, and that keeps its client."""

    _kept_client: Any = None

    def _connparams(self, asynchronous: bool = False) -> Any:
        if self.connection is None or self.connection.client is None:
            raise RedisConnectionError("The connection of this channel was closed.")
        return super()._connparams(asynchronous)  # type: ignore[misc]  # kombu's stubs leave it out

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept_client is None or self._kept_client.connection_pool is not self.pool:
            self._kept_client = super()._create_client()  # type: ignore[misc]
        return self._kept_client


class Transport(redis.Transport):
    """A transport of such channels."""

    Channel = Channel


def use_for_redis() -> None:
    """Let URLs of Redis mean this transport in this process."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{Transport.__name__}"
