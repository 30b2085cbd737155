"""What our transport adds to kombu's, on a real Valkey; the rest is in `test_lost_acknowledgement`."""

from collections.abc import Iterator
from typing import Any

import pytest
from kombu import Connection

from app.adapters.redis_transport import Transport


@pytest.fixture
def channel(quiet_redis: str) -> Iterator[Any]:
    """A channel of the transport that task processes use."""
    with Connection(quiet_redis, transport=Transport) as connection:
        yield connection.channel()


def client(channel: Any) -> Any:
    """The client by which the channel would send a command now."""
    with channel.conn_or_acquire() as found:
        return found


def test_a_channel_sends_all_its_commands_by_one_client(channel: Any) -> None:
    assert client(channel) is client(channel)
    assert client(channel).ping()


def test_a_channel_whose_connections_were_dropped_has_another_client(channel: Any) -> None:
    dropped = client(channel)
    channel._disconnect_pools()
    assert client(channel) is not dropped
    assert client(channel).ping()
