"""What commands share: how they take ids, and how they print, a table for people or JSON for scripts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]

ROW_ID = click.IntRange(0, 2**63 - 1)
"""An id as the database keeps them."""


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command its `--json` flag."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")(command)


def show(row: Row, *, as_json: bool) -> None:
    """Print one thing: its fields a line each, or one JSON object."""
    if as_json:
        click.echo(_dump(dict(row)))
        return
    width = max(len(name) for name in row)
    for name, value in row.items():
        click.echo(f"{name.ljust(width)}  {_plain(value)}")


def show_all(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print many things: a table, or one JSON array."""
    if as_json:
        click.echo(_dump([dict(row) for row in rows]))
        return
    if not rows:
        click.echo("none")
        return
    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_plain(value) for value in row.values()))
    Console().print(table)


def _dump(value: object) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()


def _plain(value: object) -> str:
    return "-" if value is None else str(value)
