"""`horde up` and `horde down`: a whole horde on this machine."""

import sys

import click

from config.settings import SettingsError, load_launcher_settings
from launcher.accounts import create_accounts
from launcher.errors import LauncherError
from launcher.options import UpOptions
from launcher.plan import home_of
from launcher.startup import StopRequested
from launcher.startup import up as bring_up
from launcher.stopping import down as take_down

INTERRUPTED = 130
"""Exit code of a start that a signal ended, as shells give it."""


@click.command()
@click.option("--detach", is_flag=True, help="Return once a completion works, and leave everything running.")
@click.option("--backend", metavar="URL", help="OpenAI-compatible backend for the worker, instead of the local model.")
@click.option("--model", metavar="NAME", help="The model that the backend serves.")
@click.option("--no-worker", is_flag=True, help="Start no worker.")
def up(detach: bool, backend: str | None, model: str | None, no_worker: bool) -> None:
    """Start a whole horde on this machine and wait until a chat completion works.

    HORDE_HOME is its data folder, HORDE_PORT_BASE the first of its ports.
    DATABASE_URL, REDIS_URL and S3_ENDPOINT_URL name services to use instead of
    its own.
    """
    try:
        options = UpOptions(detach=detach, with_worker=not no_worker, backend_url=backend, backend_model=model)
        bring_up(load_launcher_settings(), options, create_accounts)
    except (LauncherError, SettingsError) as error:
        click.echo(f"\n{error}", err=True)
        sys.exit(1)
    except StopRequested as request:
        sys.exit(0 if request.running else INTERRUPTED)


@click.command()
def down() -> None:
    """Stop everything that runs from this horde's home."""
    try:
        stopped = take_down(home_of(load_launcher_settings()))
    except (LauncherError, SettingsError) as error:
        click.echo(error, err=True)
        sys.exit(1)
    click.echo("The horde is stopped." if stopped else "Nothing runs.")
