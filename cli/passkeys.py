"""`horde passkey`."""

import click

from app.domain.errors import NotFound
from app.services import passkeys
from app.services.accounts import find_account
from cli.context import open_transaction
from cli.output import json_option, show, show_all

MOST_OVERLAP_HOURS = 24 * 31
DEFAULT_OVERLAP_HOURS = 24


@click.group()
def passkey() -> None:
    """Change the passkeys that fronts and other services prove themselves by."""


@passkey.command("list")
@json_option
def list_all(as_json: bool) -> None:
    """List the service accounts, and until when the passkey before the present one is good."""
    with open_transaction() as transaction:
        rows = passkeys.list_passkeys(transaction)
    show_all(rows, as_json=as_json)


@passkey.command()
@click.argument("account")
@click.option(
    "--overlap-hours",
    type=click.FloatRange(0, MOST_OVERLAP_HOURS),
    default=DEFAULT_OVERLAP_HOURS,
    show_default=True,
    help="The old passkey is good this long too; 0 for one that leaked.",
)
@json_option
def rotate(account: str, overlap_hours: float, as_json: bool) -> None:
    """Give service ACCOUNT, as Name#number or number, a new passkey. It is shown here and never again.

    Set it as SERVICE_PASSKEY at every front and restart them one after the
    other, then end the overlap with `horde passkey retire`. The native API needs
    no restart: it knows both.
    """
    with open_transaction() as transaction:
        found = find_account(transaction, account)
        made, until = passkeys.rotate_passkey(transaction, found.id, overlap_hours)
    show({"service": found.alias, "passkey": made, "old_one_good_until": until}, as_json=as_json)


@passkey.command()
@click.argument("account")
@json_option
def retire(account: str, as_json: bool) -> None:
    """End the overlap of ACCOUNT's last rotation now. Every process follows within ten seconds."""
    with open_transaction() as transaction:
        found = find_account(transaction, account)
        if not passkeys.retire_passkey(transaction, found.id):
            raise NotFound(f"No old passkey of {found.alias} is good any more.")
    show({"service": found.alias, "retired": True}, as_json=as_json)
