"""`horde worker`."""

from collections.abc import Callable

import click

from app.domain.worker_profile import WorkerEdit
from app.services.operate import change_worker_named, list_workers
from cli.context import open_transaction, settings_or_exit
from cli.output import json_option, show, show_all


@click.group()
def worker() -> None:
    """See the workers, and keep one from jobs."""


@worker.command("list")
@click.option("--all", "everyone", is_flag=True, help="Also those that are offline.")
@json_option
def list_all(everyone: bool, as_json: bool) -> None:
    """List the workers that are online."""
    online_seconds = settings_or_exit().worker_online_seconds
    with open_transaction() as transaction:
        rows = list_workers(transaction, online_seconds=online_seconds, everyone=everyone)
    show_all(rows, as_json=as_json)


@worker.command()
@click.argument("name_or_id")
@click.option("--end", is_flag=True, help="End the maintenance, and count its failures anew.")
@click.option("--message", help="What its pops are told.")
@json_option
def maintenance(name_or_id: str, end: bool, message: str | None, as_json: bool) -> None:
    """Put a worker into maintenance: it serves its owner alone."""
    _change(name_or_id, lambda: WorkerEdit(maintenance=not end, maintenance_msg=message), as_json=as_json)


@worker.command()
@click.argument("name_or_id")
@click.option("--end", is_flag=True, help="Let it have jobs again.")
@json_option
def pause(name_or_id: str, end: bool, as_json: bool) -> None:
    """Give a worker no jobs. Its pops are answered as if there were none."""
    _change(name_or_id, lambda: WorkerEdit(paused=not end), as_json=as_json)


def _change(name_or_id: str, wanted: Callable[[], WorkerEdit], *, as_json: bool) -> None:
    with open_transaction() as transaction:
        standing = change_worker_named(transaction, name_or_id, wanted())
    show(standing, as_json=as_json)
