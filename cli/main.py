"""Entry point of the `horde` command."""

import click

from cli.accounts import key, user
from cli.database import db
from cli.filters import filters
from cli.incident import incident
from cli.kudos import kudos
from cli.queue import queue
from cli.serve import serve
from cli.settings import settings
from cli.up import down, up
from cli.worker import worker


@click.group()
def main() -> None:
    """Run and operate a horde."""


for _command in (up, down, serve, user, key, kudos, worker, queue, incident, filters, settings, db):
    main.add_command(_command)
