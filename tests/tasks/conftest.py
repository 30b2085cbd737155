"""A Redis that a test of task processes may break."""

from collections.abc import Iterator

import pytest

from tests.support.services import LocalServices, RunningService


@pytest.fixture
def redis(services: LocalServices) -> Iterator[RunningService]:
    own = services.make_redis("frozen-redis")
    own.start()
    yield own
    own.stop()
