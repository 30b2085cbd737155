"""One horde of real processes for all flows; each flow leaves it whole and sound."""

from collections.abc import Iterator

import pytest

from tests.conftest import as_admin, url_of
from tests.support.horde import PROCESSES, HordeProcesses
from tests.support.services import LocalServices

DATABASE = "horde_flows"


@pytest.fixture(scope="session")
def running_horde(
    services: LocalServices, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HordeProcesses]:
    """Every process of a horde, with a worker on the scripted backend."""
    as_admin(services, f"CREATE DATABASE {DATABASE} TEMPLATE {template_database}")
    horde = HordeProcesses(services, url_of(services, DATABASE), tmp_path_factory.mktemp("horde"))
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
    running_horde.require_sound()
