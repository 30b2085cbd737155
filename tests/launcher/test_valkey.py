"""The Redis of one machine keeps what Celery queued, whatever becomes of it (reliability A1)."""

from collections.abc import Iterator

import pytest
from redis import Redis

from tests.support.services import LocalServices, RunningService


@pytest.fixture
def own(services: LocalServices) -> Iterator[RunningService]:
    with services.own_redis("killed-redis") as running:
        yield running


def test_what_was_queued_outlives_a_kill(own: RunningService) -> None:
    with Redis.from_url(own.service.url) as client:
        client.rpush("verdict", "a message")
    own.kill()
    own.start()
    with Redis.from_url(own.service.url) as client:
        assert client.lrange("verdict", 0, -1) == [b"a message"]


def test_nothing_is_evicted(own: RunningService) -> None:
    with Redis.from_url(own.service.url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
