"""`horde db`: migrations."""

from pathlib import Path

import click
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.exc import OperationalError

from cli.context import settings_or_exit

ROOT = Path(__file__).resolve().parent.parent


def _config() -> Config:
    settings_or_exit()
    return Config(ROOT / "alembic.ini")


@click.group()
def db() -> None:
    """Bring the database to the newest shape, or check that it has it."""


@db.command()
def upgrade() -> None:
    """Run every migration that the database has not seen."""
    try:
        command.upgrade(_config(), "head")
    except OperationalError as error:
        raise click.ClickException(f"the database cannot be upgraded: {error.orig}") from None
    click.echo("the database has the newest shape")


@db.command()
def check() -> None:
    """Fail when the models and the database disagree."""
    try:
        command.check(_config())
    except (CommandError, OperationalError) as error:
        raise click.ClickException(str(error)) from None
