"""`horde user erase` and `horde user export`."""

import click

from app.services.accounts import find_account
from app.services.erase_account import erase_account
from app.services.export_account import export_account
from cli.context import open_runtime, open_transaction
from cli.output import json_option, show


@click.command("erase")
@click.argument("account")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def erase(account: str, yes: bool, as_json: bool) -> None:
    """Erase the personal data of ACCOUNT, as Name#number or number. This cannot be undone.

    Its requests are cancelled, its keys end, its workers are deleted, its texts
    and names are erased. The ledger stays, under a stub without a name. Where
    `texts_left` is not 0, somebody works on requests of its: run it again in a
    few minutes.
    """
    with open_runtime() as runtime:
        with runtime.database.transaction() as transaction:
            found = find_account(transaction, account)
        if not yes:
            click.confirm(f"Erase {found.alias} for good?", abort=True, err=True)
        erased = erase_account(runtime, found)
    show(
        {
            "erased": found.id,
            "cancelled_requests": erased.ended.requests,
            "jobs_given_back": erased.ended.jobs,
            "texts_left": erased.left,
        },
        as_json=as_json,
    )


@click.command("export")
@click.argument("account")
def export(account: str) -> None:
    """Print all that is stored of ACCOUNT, as Name#number or number, as one JSON object."""
    with open_transaction() as transaction:
        for part in export_account(transaction, find_account(transaction, account).id):
            click.echo(part, nl=False)
