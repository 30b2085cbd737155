"""`horde filters`."""

import click

from app.domain.moderation import FilterKind, Moderation
from app.services.filters import NewFilter, add_filter, list_filters, load_filters, remove_filter
from cli.context import open_transaction
from cli.output import json_option, show, show_all


@click.group()
def filters() -> None:
    """Write the filters that screen what requesters submit."""


@filters.command("list")
@json_option
def list_all(as_json: bool) -> None:
    """List every filter."""
    with open_transaction() as transaction:
        rows = list_filters(transaction)
    show_all(rows, as_json=as_json)


@filters.command()
@click.argument("pattern")
@click.option("--replacement", help="Replace what matches by this, in place of refusing the request.")
@click.option("--description", help="Why the filter is there.")
@json_option
def add(pattern: str, replacement: str | None, description: str | None, as_json: bool) -> None:
    """Add a filter. PATTERN is RE2 syntax; case is ignored unless it begins with (?-i).

    Without --replacement a request whose text matches is refused. Every process follows within
    ten seconds.
    """
    kind = FilterKind.BLOCK if replacement is None else FilterKind.REPLACE
    with open_transaction() as transaction:
        filter_id = add_filter(transaction, NewFilter(kind, pattern, replacement, description))
    show({"id": filter_id, "kind": kind.value}, as_json=as_json)


@filters.command()
@click.argument("filter_id", type=int)
@json_option
def remove(filter_id: int, as_json: bool) -> None:
    """Remove a filter."""
    with open_transaction() as transaction:
        remove_filter(transaction, filter_id)
    show({"removed": filter_id}, as_json=as_json)


@filters.command()
@click.argument("text")
@json_option
def test(text: str, as_json: bool) -> None:
    """Show which filters TEXT matches. Nothing is stored."""
    with open_transaction() as transaction:
        matching = Moderation(load_filters(transaction)).matching(text)
    show_all([{"id": each.id, "kind": each.kind.value, "pattern": each.pattern} for each in matching], as_json=as_json)
