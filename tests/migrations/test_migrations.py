"""Migrations run up and down, and what they make is what the models say."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, inspect, make_url, text

from app.domain.system_accounts import ANONYMOUS_ID, ANONYMOUS_KEY, FIRST_USER_ID, FLOOR_ID, HORDE_ID
from app.services.accounts import digest
from tests.conftest import as_admin, url_of
from tests.support.services import LocalServices

DATABASE = "horde_migrations"


@pytest.fixture
def empty_database(services: LocalServices, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database with nothing in it, that Alembic's environment names."""
    as_admin(services, f"CREATE DATABASE {DATABASE}")
    monkeypatch.setenv("DATABASE_URL", url_of(services, DATABASE))
    monkeypatch.setenv("REDIS_URL", services.redis_url)
    yield url_of(services, DATABASE)
    as_admin(services, f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture
def config() -> Config:
    return Config("alembic.ini")


def tables(database_url: str) -> set[str]:
    engine = create_engine(make_url(database_url).set(drivername="postgresql+psycopg"))
    found = set(inspect(engine).get_table_names())
    engine.dispose()
    return found


def test_the_models_and_the_migrations_agree(empty_database: str, config: Config) -> None:
    command.upgrade(config, "head")
    command.check(config)


def test_every_migration_can_be_taken_back_and_run_again(empty_database: str, config: Config) -> None:
    command.upgrade(config, "head")
    made = tables(empty_database)
    command.downgrade(config, "base")
    assert tables(empty_database) == {"alembic_version"}
    command.upgrade(config, "head")
    assert tables(empty_database) == made


def test_every_horde_has_its_system_accounts(empty_database: str, config: Config) -> None:
    command.upgrade(config, "head")
    engine = create_engine(make_url(empty_database).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        kinds = {row.id: row.kind for row in connection.execute(text("SELECT id, kind FROM users"))}
        keys = connection.execute(text("SELECT key_sha256 FROM api_keys WHERE user_id = 0")).scalars().all()
        next_id = connection.execute(
            text("INSERT INTO users (username, kind) VALUES ('first', 'user') RETURNING id")
        ).scalar_one()
    engine.dispose()
    assert kinds == {ANONYMOUS_ID: "anonymous", HORDE_ID: "system", FLOOR_ID: "system"}
    assert keys == [digest(ANONYMOUS_KEY)]
    assert next_id == FIRST_USER_ID


def test_two_releases_at_once_migrate_once(empty_database: str) -> None:
    commands = [
        subprocess.Popen([sys.executable, "-m", "alembic", "upgrade", "head"], env=os.environ.copy()) for _ in range(2)
    ]
    assert [process.wait(60) for process in commands] == [0, 0]
    assert "horde_requests" in tables(empty_database)


def test_what_analyze_gathered_of_a_column_that_has_no_statistics_any_more_is_forgotten(
    empty_database: str, config: Config
) -> None:
    command.upgrade(config, "0011_incidents")
    engine = create_engine(make_url(empty_database).set(drivername="postgresql+psycopg"))
    gathered = text("SELECT attname FROM pg_stats WHERE tablename = 'ledger_entries' AND attname IN ('folded', 'kind')")
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO ledger_entries (business_key, kind, user_id, amount, folded)"
                " SELECT i::text, 'grant', 0, 0, true FROM generate_series(1, 100) i"
            )
        )
        connection.execute(text("ANALYZE ledger_entries"))
        before = set(connection.execute(gathered).scalars())
    command.upgrade(config, "head")
    with engine.begin() as connection:
        at_once = set(connection.execute(gathered).scalars())
        connection.execute(text("ANALYZE ledger_entries"))
        later = set(connection.execute(gathered).scalars())
    engine.dispose()
    assert (before, at_once, later) == ({"folded", "kind"}, {"kind"}, {"kind"})
