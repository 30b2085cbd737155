"""Reports of bad workers and requesters: made with a key, read and closed by moderators and operators."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.errors import (
    AnonForbiddenReport,
    BadRequest,
    ReportAlreadyOpen,
    ReportNotFound,
    UserNotFound,
)
from app.domain.reports import ReportKind, ReportState
from app.domain.wire_dates import rfc822
from app.models.account import AccountKind
from app.services.accounts import alias_of, authenticate, find_account
from app.services.moderators import require_moderator
from app.services.request_status import unknown_request
from app.services.runtime import Runtime
from app.services.workers import unknown_worker

PAGE = 50

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """What a report names, in one spelling, and whom it is about."""

    name: str
    user_id: int
    worker_id: UUID | None = None
    request_id: UUID | None = None


class Reports:
    """The use cases of `/reports`."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database

    def make(self, api_key: str, kind: ReportKind, target: str, reason: str) -> dict[str, Any]:
        """Store a report and return its number.

        Raises InvalidApiKey, AnonForbiddenReport, WorkerNotFound, UserNotFound or RequestNotFound for what is
        not there, BadRequest for the reporter itself, and ReportAlreadyOpen.
        """
        with self._database.statements() as transaction:
            reporter = authenticate(transaction, api_key)
            if reporter.is_anonymous:
                raise AnonForbiddenReport("Reports need a key of an account. Register to get one.")
            found = _FINDERS[kind](transaction, target)
            if found.user_id == reporter.user_id:
                raise BadRequest(
                    "target: this is about your own account. A reply to a request of yours is reported by its "
                    "worker's id, which the request's status names.",
                    param="target",
                )
            values = {
                "reporter": reporter.user_id,
                "kind": kind.value,
                "target": found.name,
                "user_id": found.user_id,
                "worker_id": found.worker_id,
                "request_id": found.request_id,
                "reason": reason,
            }
            report_id = transaction.execute(_MAKE, values).scalar_one_or_none()
        if report_id is None:
            raise ReportAlreadyOpen("Your report about this is still open. A moderator will look at it.")
        log.info("report.made", report_id=report_id, kind=kind.value, user_id=found.user_id)
        return {"id": report_id}

    def page(self, api_key: str, state: ReportState, number: int) -> list[dict[str, Any]]:
        """Return a page of reports, the newest first. Raises InvalidApiKey and NotModerator."""
        with self._database.statements() as transaction:
            require_moderator(transaction, api_key)
            return [_dated(report) for report in list_reports(transaction, state, page=number)]

    def close(self, api_key: str, report_id: int, note: str | None) -> dict[str, Any]:
        """Close a report and return it. Raises InvalidApiKey, NotModerator and ReportNotFound."""
        with self._database.transaction() as transaction:
            moderator = require_moderator(transaction, api_key)
            closed = close_report(transaction, report_id, note)
        log.info("report.closed", report_id=report_id, by=moderator.user_id)
        return _dated(closed)


def list_reports(transaction: Transaction, state: ReportState, *, page: int = 1) -> list[dict[str, Any]]:
    """Return reports of this state, the newest first, 50 a page."""
    values = {"state": state.value, "id": None, "limit": PAGE, "skip": PAGE * (page - 1)}
    return [_shown(row) for row in transaction.execute(_READ, values)]


def read_report(transaction: Transaction, report_id: int) -> dict[str, Any]:
    """Return a report. Raises ReportNotFound."""
    values = {"state": ReportState.ALL.value, "id": report_id, "limit": 1, "skip": 0}
    row = transaction.execute(_READ, values).one_or_none()
    if row is None:
        raise ReportNotFound(f"No report has the number {report_id}.")
    return _shown(row)


def close_report(transaction: Transaction, report_id: int, note: str | None) -> dict[str, Any]:
    """Close a report, with a note for who reads it later, and return it. A closed one keeps its time.

    Raises ReportNotFound.
    """
    transaction.execute(_CLOSE, {"id": report_id, "note": note})
    return read_report(transaction, report_id)


def _worker(transaction: Transaction, target: str) -> _Target:
    row = _by_uuid(transaction, _WORKER, target)
    if row is None:
        raise unknown_worker()
    return _Target(name=str(row.id), user_id=row.user_id, worker_id=row.id)


def _requester(transaction: Transaction, target: str) -> _Target:
    found = find_account(transaction, target)
    if found.kind == AccountKind.SYSTEM:
        raise UserNotFound("This is the horde's own account.")
    return _Target(name=str(found.id), user_id=found.id)


def _request(transaction: Transaction, target: str) -> _Target:
    row = _by_uuid(transaction, _REQUEST, target)
    if row is None:
        raise unknown_request()
    return _Target(name=str(row.id), user_id=row.user_id, request_id=row.id)


def _by_uuid(transaction: Transaction, statement: Any, target: str) -> Row[Any] | None:
    try:
        wanted = UUID(target)
    except ValueError:
        return None
    return transaction.execute(statement, {"id": wanted}).one_or_none()


_FINDERS = {ReportKind.WORKER: _worker, ReportKind.REQUESTER: _requester, ReportKind.REQUEST: _request}


def _shown(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "about": alias_of(row.username, row.user_id),
        "worker": row.worker_name,
        "worker_id": None if row.worker_id is None else str(row.worker_id),
        "request_id": None if row.request_id is None else str(row.request_id),
        "reporter": alias_of(row.reporter_name, row.reporter_id),
        "reason": row.reason,
        "created_at": row.created_at,
        "closed_at": row.closed_at,
        "note": row.note,
    }


def _dated(report: dict[str, Any]) -> dict[str, Any]:
    """The report with its times as the wire has them."""
    times = {name: report[name] for name in ("created_at", "closed_at")}
    return report | {name: None if at is None else rfc822(at) for name, at in times.items()}


_WORKER = text("SELECT id, user_id FROM workers WHERE id = :id AND deleted_at IS NULL")

# Workers know jobs, requesters know requests.
_REQUEST = text(
    """
    SELECT id, user_id FROM horde_requests
    WHERE id = COALESCE((SELECT g.request_id FROM generations g WHERE g.id = :id), :id)
    """
)

_MAKE = text(
    """
    INSERT INTO reports (reporter_id, kind, target, user_id, worker_id, request_id, reason)
    VALUES (:reporter, :kind, :target, :user_id, CAST(:worker_id AS uuid), CAST(:request_id AS uuid), :reason)
    ON CONFLICT (reporter_id, kind, target) WHERE closed_at IS NULL DO NOTHING
    RETURNING id
    """
)

_READ = text(
    """
    SELECT p.*, u.username, o.username AS reporter_name, w.name AS worker_name
    FROM reports p
    JOIN users u ON u.id = p.user_id
    JOIN users o ON o.id = p.reporter_id
    LEFT JOIN workers w ON w.id = p.worker_id
    WHERE (CAST(:id AS bigint) IS NULL OR p.id = CAST(:id AS bigint))
      AND (:state = 'all' OR (:state = 'open') = (p.closed_at IS NULL))
    ORDER BY p.id DESC LIMIT :limit OFFSET :skip
    """
)

_CLOSE = text(
    """
    UPDATE reports SET closed_at = COALESCE(closed_at, now()), note = COALESCE(CAST(:note AS text), note)
    WHERE id = :id
    """
)
