"""A horde with RabbitMQ as Celery's broker, by its URL alone (architecture A2)."""

from collections.abc import Iterator

import pytest

from tests.conftest import as_admin, url_of
from tests.support.asking import Asking
from tests.support.horde import HordeProcesses
from tests.support.rabbitmq import PROGRAM, RabbitMq, running_rabbitmq
from tests.support.services import LocalServices, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="needs RabbitMQ (apt-get install rabbitmq-server)"),
]

DATABASE = "horde_rabbitmq"


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMq]:
    with running_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as broker:
        yield broker


@pytest.fixture(scope="module")
def horde(
    rabbitmq: RabbitMq, services: LocalServices, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HordeProcesses]:
    as_admin(services, f"CREATE DATABASE {DATABASE} TEMPLATE {template_database}")
    with services.own_redis("redis-beside-rabbitmq") as redis:
        settings = {"BROKER_URL": rabbitmq.url, "REDIS_URL": redis.service.url}
        horde = HordeProcesses(services, url_of(services, DATABASE), tmp_path_factory.mktemp("horde"), settings)
        try:
            horde.start_all()
            yield horde
        finally:
            horde.close()


def test_a_request_is_answered_verified_and_settled(horde: HordeProcesses) -> None:
    with Asking(horde, "Over another broker.") as asking:
        assert asking.answer().choices[0].message.content == "Over another broker."
        wait_until(lambda: asking.charges() == 1, 30, "it is not settled")
    horde.require_sound()


def test_a_request_outlives_a_broker_that_is_killed_and_started_again(
    horde: HordeProcesses, rabbitmq: RabbitMq
) -> None:
    with Asking(horde, "[[delay=2]]Killing the broker.") as asking:
        asking.wait_for("leased")
        rabbitmq.kill()
        rabbitmq.start()
        assert asking.answer().choices[0].message.content == "Killing the broker."
    horde.require_sound(90)
    assert asking.charges() == 1
