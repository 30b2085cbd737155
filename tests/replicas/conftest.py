"""A horde of two of each process behind nginx, on services of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import as_admin, url_of
from tests.support.replicas import ReplicatedHorde
from tests.support.services import LocalServices

DATABASE = "horde_replicas"


@pytest.fixture
def replicated(services: LocalServices, template_database: str, tmp_path: Path) -> Iterator[ReplicatedHorde]:
    """Two of each process, started and ready."""
    as_admin(services, f"CREATE DATABASE {DATABASE} TEMPLATE {template_database}")
    horde = ReplicatedHorde(services, url_of(services, DATABASE), tmp_path)
    try:
        horde.start_all()
        yield horde
    finally:
        horde.close()
        as_admin(services, f"DROP DATABASE {DATABASE} WITH (FORCE)")
