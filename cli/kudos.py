"""`horde kudos`."""

from decimal import Decimal, InvalidOperation

import click

from app.domain.errors import BadRequest
from app.domain.pricing import kudos as shown_kudos
from app.domain.transfer_rules import whole_millikudos
from app.services import accounts
from app.services import kudos as ledger
from app.services.invariants import check
from app.services.transfers import Gift, transfer
from cli.context import open_transaction
from cli.output import json_option, show, show_all


@click.group()
def kudos() -> None:
    """Grant and transfer kudos, and check that the books balance."""


@kudos.command()
@click.argument("account")
@click.argument("amount")
@json_option
def grant(account: str, amount: str, as_json: bool) -> None:
    """Give ACCOUNT, as Name#number or number, AMOUNT kudos from the horde's own account."""
    with open_transaction() as transaction:
        user_id = accounts.find_account(transaction, account).id
        business_key = ledger.grant(transaction, user_id, _millikudos(amount))
        after = ledger.balance(transaction, user_id)
    show({"movement": business_key, "kudos": shown_kudos(after)}, as_json=as_json)


@kudos.command("transfer")
@click.argument("source")
@click.argument("target")
@click.argument("amount")
@click.option("--idempotency-key", help="The same key again moves nothing, so a command may be repeated safely.")
@json_option
def transfer_kudos(source: str, target: str, amount: str, idempotency_key: str | None, as_json: bool) -> None:
    """Move AMOUNT kudos from SOURCE to TARGET, as Name#number or number, by the rules that bind their owners."""
    with open_transaction() as transaction:
        source_id = accounts.find_account(transaction, source).id
        gift = Gift(
            source_id=source_id,
            target=accounts.find_account(transaction, target).id,
            amount=_millikudos(amount),
            idempotency_key=idempotency_key,
        )
        transfer_id = transfer(transaction, gift)
        left = ledger.balance(transaction, source_id)
    show({"movement": f"transfer:{transfer_id}", "kudos": shown_kudos(left)}, as_json=as_json)


@kudos.command("check")
@click.option("--at-rest", is_flag=True, help="Also report what should have ended by now; for an idle horde.")
@json_option
def check_books(at_rest: bool, as_json: bool) -> None:
    """Check the ledger and every state; exit code 1 when a rule does not hold."""
    with open_transaction() as transaction:
        violations = check(transaction, at_rest=at_rest)
    rows = [{"rule": violation.rule, "rows": list(violation.rows)} for violation in violations]
    if rows or as_json:
        show_all(rows, as_json=as_json)
    else:
        click.echo("every rule holds")
    if rows:
        raise SystemExit(1)


def _millikudos(amount: str) -> int:
    try:
        return whole_millikudos(Decimal(amount))
    except InvalidOperation:
        raise BadRequest("amount: must be a number.", param="amount") from None
