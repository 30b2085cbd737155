"""`horde report`."""

import click

from app.domain.reports import LONGEST_REASON, ReportState
from app.services import reports
from cli.context import open_transaction
from cli.output import ROW_ID, json_option, show, show_all

STATES = [state.value for state in ReportState]


@click.group()
def report() -> None:
    """Read and close what accounts report of each other."""


@report.command("list")
@click.option(
    "--state",
    type=click.Choice([state.value for state in ReportState]),
    default=ReportState.OPEN.value,
    show_default=True,
)
@click.option("--page", type=click.IntRange(1, 10_000), default=1, show_default=True, help="50 reports a page.")
@json_option
def list_all(state: str, page: int, as_json: bool) -> None:
    """List reports, the newest first."""
    with open_transaction() as transaction:
        found = reports.list_reports(transaction, ReportState(state), page=page)
    if as_json:
        show_all(found, as_json=True)
        return
    columns = ("id", "kind", "about", "worker", "reporter", "created_at", "closed_at")
    show_all([{name: each[name] for name in columns} for each in found], as_json=False)


@report.command("show")
@click.argument("report_id", type=ROW_ID)
@json_option
def show_one(report_id: int, as_json: bool) -> None:
    """Show a report with its reason."""
    with open_transaction() as transaction:
        found = reports.read_report(transaction, report_id)
    show(found, as_json=as_json)


@report.command()
@click.argument("report_id", type=ROW_ID)
@click.option("--note", help="What was done about it, for who reads it later.")
@json_option
def close(report_id: int, note: str | None, as_json: bool) -> None:
    """Close a report. Its reporter may then report the same again."""
    if note is not None and len(note) > LONGEST_REASON:
        raise click.UsageError(f"--note: at most {LONGEST_REASON} characters.")
    with open_transaction() as transaction:
        closed = reports.close_report(transaction, report_id, note)
    show(closed, as_json=as_json)
