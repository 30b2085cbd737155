"""`horde kudos`."""

from decimal import Decimal, InvalidOperation

import click

from app.domain.errors import BadRequest
from app.domain.pricing import kudos as shown_kudos
from app.services import accounts
from app.services import kudos as ledger
from app.services.invariants import check
from cli.context import open_transaction
from cli.output import ROW_ID, json_option, show, show_all

MILLI = 1000


@click.group()
def kudos() -> None:
    """Grant kudos, and check that the books balance."""


@kudos.command()
@click.argument("user_id", type=ROW_ID)
@click.argument("amount")
@json_option
def grant(user_id: int, amount: str, as_json: bool) -> None:
    """Give an account AMOUNT kudos from the horde's own account."""
    with open_transaction() as transaction:
        accounts.get_account(transaction, user_id)
        business_key = ledger.grant(transaction, user_id, _millikudos(amount))
        after = ledger.balance(transaction, user_id)
    show({"movement": business_key, "kudos": shown_kudos(after)}, as_json=as_json)


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
        value = Decimal(amount) * MILLI
    except InvalidOperation:
        raise BadRequest("amount: must be a number.", param="amount") from None
    if not value.is_finite():
        raise BadRequest("amount: must be a number.", param="amount")
    if value != value.to_integral_value():
        raise BadRequest("amount: must have at most three decimals.", param="amount")
    return int(value)
