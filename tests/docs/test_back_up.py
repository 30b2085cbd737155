"""The page about backups, run as printed on a database with accounts, kudos and requests."""

import os
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from app.services.local_accounts import ensure_local_accounts
from config.settings import Settings
from launcher.services.postgres import _installation
from tests.docs.printed import Terminal, blocks
from tests.support.horde import KEYS
from tests.support.services import LocalServices

PAGE = "how-to/back-up.md"
TABLES = ("users", "api_keys", "ledger_entries", "balances", "workers", "alembic_version")


@pytest.fixture
def settings(services: LocalServices, database_url: str) -> Settings:
    """A horde's database with accounts and kudos."""
    made = Settings(_env_file=None, database_url=database_url, redis_url=services.redis_url)
    ensure_local_accounts(made, KEYS)
    return made


@pytest.fixture
def terminal(settings: Settings, services: LocalServices, database_url: str, tmp_path: Path) -> Terminal:
    programs = [str(_installation() / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    variables = {"PATH": os.pathsep.join(programs), "DATABASE_URL": database_url, "REDIS_URL": services.redis_url}
    return Terminal(tmp_path, tmp_path, variables)


def content(settings: Settings) -> dict[str, list[str]]:
    """Every row of the tables that matter."""
    engine = create_engine(settings.database_url)
    try:
        with engine.connect() as connection:
            return {
                table: sorted(str(row[0]) for row in connection.execute(text(f"SELECT t::text FROM {table} t")))  # noqa: S608
                for table in TABLES
            }
    finally:
        engine.dispose()


def ruin(settings: Settings) -> None:
    """What a bad day does: kudos changed, keys gone, a table of a newer release that hangs on an old one."""
    engine = create_engine(settings.database_url)
    try:
        with engine.begin() as connection:
            connection.execute(text("UPDATE ledger_entries SET amount = amount + 1"))
            connection.execute(text("DELETE FROM api_keys"))
            connection.execute(text("CREATE TABLE of_tomorrow (user_id bigint REFERENCES users (id))"))
    finally:
        engine.dispose()


def test_what_was_backed_up_as_printed_is_restored_as_printed(settings: Settings, terminal: Terminal) -> None:
    terminal.run("horde kudos grant 101 5000")
    before = content(settings)
    assert before["ledger_entries"]
    [back_up], [restore] = blocks(PAGE, section="Back up"), blocks(PAGE, section="Restore")
    terminal.run(back_up)
    ruin(settings)
    assert content(settings) != before
    terminal.run(restore)
    assert content(settings) == before
    assert terminal.run("horde db check")


def test_a_restore_without_a_dump_fails_before_the_books_are_said_to_be_right(terminal: Terminal) -> None:
    [restore] = blocks(PAGE, section="Restore")
    with pytest.raises(AssertionError, match=r"horde\.dump"):
        terminal.run(restore)
