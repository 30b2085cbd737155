"""A Redis that a test of task processes may break."""

from collections.abc import Iterator

import pytest

from tests.support.services import LocalServices, RunningService


@pytest.fixture
def redis(services: LocalServices) -> Iterator[RunningService]:
    with services.own_redis("frozen-redis") as own:
        yield own
