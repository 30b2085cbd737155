"""`horde db`: migrations."""

import sys
from pathlib import Path

import click
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.exc import OperationalError

from cli.context import settings_or_exit
from cli.output import json_option, show

ROOT = Path(__file__).resolve().parent.parent


def _config() -> Config:
    settings_or_exit()
    # Alembic's own lines would stand among ours on standard output.
    return Config(ROOT / "alembic.ini", stdout=sys.stderr)


@click.group()
def db() -> None:
    """Bring the database to the newest shape, or check that it has it."""


@db.command()
@json_option
def upgrade(as_json: bool) -> None:
    """Run every migration that the database has not seen."""
    try:
        command.upgrade(_config(), "head")
    except OperationalError as error:
        raise click.ClickException(f"the database cannot be upgraded: {error.orig}") from None
    _say("the database has the newest shape", as_json=as_json)


@db.command()
@json_option
def check(as_json: bool) -> None:
    """Fail when the models and the database disagree."""
    try:
        command.check(_config())
    except (CommandError, OperationalError) as error:
        raise click.ClickException(str(error)) from None
    _say("the models and the database agree", as_json=as_json)


def _say(what: str, *, as_json: bool) -> None:
    if as_json:
        show({"database": what}, as_json=True)
    else:
        click.echo(what)
