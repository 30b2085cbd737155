"""What every operator's command works with, and how its refusals reach the person."""

from collections.abc import Iterator
from contextlib import contextmanager

import click
from sqlalchemy.exc import OperationalError

from app.adapters.database import Database, Transaction
from app.domain.errors import HordeError
from config.settings import Settings, SettingsError, load_settings


def settings_or_exit() -> Settings:
    """Return the settings, or end the command with every problem listed."""
    try:
        return load_settings()
    except SettingsError as error:
        raise click.ClickException(f"the environment cannot be used:\n{error}") from None


@contextmanager
def open_transaction() -> Iterator[Transaction]:
    """Open a transaction; a refusal or an absent database ends the command with its reason."""
    database = Database(settings_or_exit(), pool_size=1, application="cli")
    try:
        with database.transaction() as transaction:
            yield transaction
    except HordeError as error:
        raise click.ClickException(error.message) from None
    except OperationalError as error:
        raise click.ClickException(f"the database cannot be reached: {error.orig}") from None
    finally:
        database.close()
