"""Real services and a running horde for the tests that need them: one set a session, a fresh database a test."""

from collections.abc import Iterator
from functools import partial

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from tests.support.databases import FreshDatabases, upgrade
from tests.support.horde import PROCESSES, HordeProcesses
from tests.support.services import LocalServices

TEMPLATE = "horde_template"
FLOWS = "horde_flows"
PASSKEY = "test-service-passkey"


@pytest.fixture(scope="session")
def services() -> Iterator[LocalServices]:
    """PostgreSQL, Valkey and S3, started for this session and gone with it."""
    with LocalServices() as running:
        yield running


@pytest.fixture(scope="session")
def quiet_redis(services: LocalServices) -> Iterator[str]:
    """URL of a Valkey that no process of a horde reads or writes."""
    with services.own_redis("quiet-redis") as redis:
        yield redis.service.url


def as_admin(services: LocalServices, *statements: str) -> None:
    """Run statements outside a transaction, from the database that no test uses."""
    engine = create_engine(
        make_url(services.database_url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    try:
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))
    finally:
        engine.dispose()


def url_of(services: LocalServices, database: str) -> str:
    """Where a database of this session's server is."""
    return make_url(services.database_url).set(database=database).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def template_database(services: LocalServices) -> str:
    """A database with the newest shape, to be cloned and never used itself."""
    as_admin(services, f"CREATE DATABASE {TEMPLATE}")
    upgrade(url_of(services, TEMPLATE), services.redis_url)
    return TEMPLATE


@pytest.fixture(scope="session")
def fresh_databases(services: LocalServices, template_database: str) -> Iterator[FreshDatabases]:
    """Clones of the template, one ahead of the tests."""
    with FreshDatabases(partial(as_admin, services), template_database) as databases:
        yield databases


@pytest.fixture
def database_url(services: LocalServices, fresh_databases: FreshDatabases) -> Iterator[str]:
    """A database of this test's own, in which it may commit what it likes."""
    name = fresh_databases.take()
    yield url_of(services, name)
    fresh_databases.give_back(name)


@pytest.fixture(scope="session")
def running_horde(
    services: LocalServices, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HordeProcesses]:
    """Every process of a horde, with a worker on the scripted backend."""
    as_admin(services, f"CREATE DATABASE {FLOWS} TEMPLATE {template_database}")
    horde = HordeProcesses(services, url_of(services, FLOWS), tmp_path_factory.mktemp("horde"))
    try:
        horde.start_all()
        yield horde
    finally:
        horde.close()


@pytest.fixture
def horde(running_horde: HordeProcesses) -> Iterator[HordeProcesses]:
    """The horde with every process up, and sound once the flow has ended."""
    dead = [name for name in PROCESSES if not running_horde.is_alive(name)]
    for name in dead:
        running_horde.start(name)
    if dead:
        running_horde.wait_ready()
    yield running_horde
    for name in PROCESSES:
        if not running_horde.is_alive(name):
            running_horde.start(name)
    running_horde.cancel_open()
    running_horde.require_sound()
