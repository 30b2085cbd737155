"""Entry point of the `horde` command."""

import click

from cli.accounts import key, user
from cli.bans import ban, unban
from cli.database import db
from cli.filters import filters
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
for _command in (up, down, serve, user, key, passkey, kudos, worker, queue, ban, unban, report, filters, settings, db):
    main.add_command(_command)
