"""Routes for reports of bad workers and requesters."""

from flask import Blueprint, Response, request

from app.api import bodies
from app.api.callers import require_key
from app.api.errors import json_response
from app.api.operations import Key, Operation, documented, read_body, read_query
from app.api.services import services
from app.api.shapes import Report, ReportMade
from app.domain import errors

TAG = "reports"
LONGEST_ID = 18

blueprint = Blueprint("reports", __name__)


@blueprint.post("/reports")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.ReportBody,
        answers={201: ReportMade},
        refuses=(
            errors.AnonForbiddenReport,
            errors.WorkerNotFound,
            errors.UserNotFound,
            errors.RequestNotFound,
            errors.ReportAlreadyOpen,
        ),
    )
)
def make_report() -> Response:
    """Report a worker, an account, or one request by its id or its job's, to the moderators."""
    api_key = require_key(request)
    given = read_body(bodies.ReportBody)
    return json_response(services().reports.make(api_key, given.kind, given.target, given.reason), 201)


@blueprint.get("/reports")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        query=bodies.ReportsQuery,
        answers={200: list[Report]},
        refuses=(errors.NotModerator,),
    )
)
def list_reports() -> Response:
    """List reports, the newest first, 50 a page. For moderators."""
    api_key = require_key(request)
    wanted = read_query(bodies.ReportsQuery)
    return json_response(services().reports.page(api_key, wanted.state, wanted.page))


@blueprint.patch("/reports/<report_id>")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.ReportClosing,
        answers={200: Report},
        refuses=(errors.NotModerator, errors.ReportNotFound),
    )
)
def close_report(report_id: str) -> Response:
    """Close a report, with a note for who reads it later. For moderators."""
    api_key = require_key(request)
    note = read_body(bodies.ReportClosing).note
    return json_response(services().reports.close(api_key, _id(report_id), note))


def _id(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= LONGEST_ID):
        raise errors.ReportNotFound("Reports are named by number.")
    return int(value)
