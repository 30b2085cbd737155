"""`horde queue`."""

import click

from app.services.operate import read_queue
from cli.context import open_transaction, settings_or_exit
from cli.output import json_option, show_all


@click.command()
@json_option
def queue(as_json: bool) -> None:
    """Show what waits, by what it needs, and how many online workers could take it."""
    online_seconds = settings_or_exit().worker_online_seconds
    with open_transaction() as transaction:
        rows = read_queue(transaction, online_seconds=online_seconds)
    show_all(rows, as_json=as_json)
