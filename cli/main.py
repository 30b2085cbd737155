"""Entry point of the `horde` command."""

import click

from cli.accounts import key, user
from cli.bans import ban, unban
from cli.database import db
from cli.filters import filters
from cli.incident import incident
from cli.kudos import kudos
from cli.passkeys import passkey
from cli.privacy import erase, export
from cli.queue import queue
from cli.reports import report
from cli.serve import serve
from cli.settings import settings
from cli.up import down, up
from cli.worker import worker


@click.group()
def main() -> None:
    """Run and operate a horde."""


for _of_accounts in (erase, export):
    user.add_command(_of_accounts)
COMMANDS = (
    *(up, down, serve, settings, db),
    *(user, key, passkey, kudos),
    *(worker, queue, filters, incident),
    *(ban, unban, report),
)
for _command in COMMANDS:
    main.add_command(_command)
