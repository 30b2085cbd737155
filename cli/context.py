"""What every operator's command works with, and how its refusals reach the person."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
import structlog
from celery import Celery
from sqlalchemy.exc import OperationalError

from app.adapters.database import Database, Transaction
from app.domain.errors import HordeError
from app.services.runtime import Runtime, build_runtime
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
        with _told(), database.transaction() as transaction:
            yield transaction
    finally:
        database.close()


@contextmanager
def open_runtime() -> Iterator[Runtime]:
    """Open what a process of the horde works with, for commands that end what is under way.

    A refusal or an absent database ends the command with its reason; without Redis it goes on.
    """
    celery = Celery("horde", set_as_current=False)
    celery.config_from_object("celeryconfig")
    runtime = build_runtime(settings_or_exit(), celery, pool_size=2, application="cli")
    try:
        with _told():
            yield runtime
    finally:
        runtime.database.close()
        runtime.bus.close()
        runtime.leases.close()
        celery.close()


@contextmanager
def _told() -> Iterator[None]:
    """Turn a refusal, or an absent database, into a line for the operator; warnings go to standard error."""
    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        yield
    except HordeError as error:
        raise click.ClickException(error.message) from None
    except OperationalError as error:
        raise click.ClickException(f"the database cannot be reached: {error.orig}") from None
    finally:
        structlog.configure(**before)
