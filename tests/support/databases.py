"""Databases for tests, each a clone of one template; the next one is made while a test runs on its own."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self
from uuid import uuid4

import pytest
from alembic import command
from alembic.config import Config

from config.settings import get_settings

Run = Callable[[str], None]


def upgrade(database_url: str, redis_url: str) -> None:
    """Give a database the newest tables; this process's environment and settings stay as they were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", database_url)
        patch.setenv("REDIS_URL", redis_url)
        get_settings.cache_clear()
        try:
            command.upgrade(Config("alembic.ini"), "head")
        finally:
            get_settings.cache_clear()


class FreshDatabases:
    """Makes and drops databases beside the tests. `run` runs one statement as the server's admin."""

    def __init__(self, run: Run, template: str) -> None:
        self._run = run
        self._template = template
        self._pool = ThreadPoolExecutor(1)
        self._next: Future[str] = self._pool.submit(self._make)

    def take(self) -> str:
        """The name of a database that nobody has used."""
        name = self._next.result()
        self._next = self._pool.submit(self._make)
        return name

    def give_back(self, name: str) -> None:
        """Drop a database, whoever is still connected."""
        self._pool.submit(self._run, f"DROP DATABASE {name} WITH (FORCE)").add_done_callback(_raise)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def _make(self) -> str:
        name = f"horde_{uuid4().hex}"
        self._run(f"CREATE DATABASE {name} TEMPLATE {self._template}")
        return name


def _raise(done: Future[None]) -> None:
    done.result()
