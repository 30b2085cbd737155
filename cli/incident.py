"""`horde incident`."""

import click

from app.services.incidents import ShownIncident, clear_incident, current_incident, set_incident
from cli.context import open_transaction
from cli.output import json_option, show


@click.group()
def incident() -> None:
    """Tell everybody on the status page what is wrong."""


@incident.command("set")
@click.argument("text")
@json_option
def set_line(text: str, as_json: bool) -> None:
    """Show TEXT on the status page in place of whatever is shown. Open pages follow within seconds."""
    with open_transaction() as transaction:
        shown = set_incident(transaction, text)
    show(_row(shown), as_json=as_json)


@incident.command()
@json_option
def clear(as_json: bool) -> None:
    """Show no line. Nothing happens when none is shown."""
    with open_transaction() as transaction:
        cleared = clear_incident(transaction)
    show({"cleared": cleared}, as_json=as_json)


@incident.command("show")
@json_option
def show_line(as_json: bool) -> None:
    """Show the line and since when it is there."""
    with open_transaction() as transaction:
        shown = current_incident(transaction)
    show(_row(shown), as_json=as_json)


def _row(shown: ShownIncident | None) -> dict[str, object]:
    return {
        "text": None if shown is None else shown.message,
        "since": None if shown is None else shown.since,
    }
