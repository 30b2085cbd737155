"""`horde ban` and `horde unban`."""

import click

from app.domain.errors import NotFound
from app.domain.reports import LONGEST_REASON
from app.services import bans
from app.services.accounts import find_account
from app.services.under_way import end_all_under_way
from cli.context import open_runtime, open_transaction
from cli.output import json_option, show, show_all

MOST_HOURS = 24 * 366 * 100

_reason = click.option("--reason", help="Told to whoever is kept out.")
_hours = click.option(
    "--hours", type=click.FloatRange(0, MOST_HOURS, min_open=True), help="The ban ends by itself; otherwise never."
)


@click.group()
def ban() -> None:
    """Keep accounts and addresses out."""


@ban.command("user")
@click.argument("account")
@_reason
@_hours
@json_option
def ban_user(account: str, reason: str | None, hours: float | None, as_json: bool) -> None:
    """Ban ACCOUNT, as Name#number or number, from every route.

    Its open requests are cancelled, its workers go offline and their jobs go to
    others. Banned again, it has the new reason and end. The anonymous account
    may be banned too: then nobody asks without a key.
    """
    _check(reason)
    with open_runtime() as runtime:
        with runtime.database.transaction() as transaction:
            found = find_account(transaction, account)
            ends_at = bans.ban_account(transaction, found, reason, hours)
        ended = end_all_under_way(runtime, [found.id])
    show(
        {
            "banned": found.alias,
            "ends_at": ends_at,
            "cancelled_requests": ended.requests,
            "jobs_given_back": ended.jobs,
        },
        as_json=as_json,
    )


@ban.command("address")
@click.argument("network")
@_reason
@_hours
@json_option
def ban_address(network: str, reason: str | None, hours: float | None, as_json: bool) -> None:
    """Ban NETWORK, an address or such as 192.0.2.0/24: no requests, pops or registrations come from it.

    An IPv6 address stands for its /64, which is one subscriber's. Every process
    follows within two seconds. Jobs that its workers have may still be delivered.
    """
    _check(reason)
    with open_transaction() as transaction:
        banned, ends_at = bans.ban_network(transaction, network, reason, hours)
    show({"banned": str(banned), "ends_at": ends_at}, as_json=as_json)


@ban.command("list")
@json_option
def list_all(as_json: bool) -> None:
    """List the bans, the newest first."""
    with open_transaction() as transaction:
        rows = bans.list_bans(transaction)
    show_all(rows, as_json=as_json)


@click.group()
def unban() -> None:
    """Let accounts and addresses in again."""


@unban.command("user")
@click.argument("account")
@json_option
def unban_user(account: str, as_json: bool) -> None:
    """End the ban of ACCOUNT, as Name#number or number."""
    with open_transaction() as transaction:
        found = find_account(transaction, account)
        if not bans.unban_account(transaction, found.id):
            raise NotFound(f"{found.alias} is not banned.")
    show({"unbanned": found.alias}, as_json=as_json)


@unban.command("address")
@click.argument("network")
@json_option
def unban_address(network: str, as_json: bool) -> None:
    """End the ban of exactly NETWORK, as `horde ban list` shows it."""
    with open_transaction() as transaction:
        if not bans.unban_network(transaction, network):
            raise NotFound(f"{network} is not banned. `horde ban list` shows what is.")
    show({"unbanned": network}, as_json=as_json)


def _check(reason: str | None) -> None:
    if reason is not None and len(reason) > LONGEST_REASON:
        raise click.UsageError(f"--reason: at most {LONGEST_REASON} characters.")
