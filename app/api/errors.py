"""Every failure as `{message, rc}`: one mapping for all native routes (details D3)."""

from typing import Any

import orjson
import structlog
from flask import Flask, Response
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from app.domain.errors import (
    HordeError,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    ProgressCapReached,
    ProgressOutOfStep,
    ServiceUnavailable,
    ValidationFailed,
)

RETRY_AFTER_SECONDS = 2

log = structlog.get_logger(__name__)


def json_response(body: Any, status: int = 200) -> Response:
    """Build a JSON answer."""
    return Response(orjson.dumps(body), status=status, mimetype="application/json")


def error_response(error: HordeError) -> Response:
    """Shape a refusal: `message` and `rc`, for chat also `param` and `metadata`.

    A text body's faulty keys come as `errors` without an `rc`, which existing clients rely on.
    """
    if isinstance(error, ValidationFailed):
        return json_response({"errors": error.errors, "message": error.message}, error.http_status)
    body: dict[str, object] = {
        "message": error.message,
        "rc": error.code,
        "param": error.param,
        "metadata": error.metadata,
    }
    if isinstance(error, ProgressOutOfStep | ProgressCapReached):
        body |= error.metadata or {}
    response = json_response(body, error.http_status)
    if error.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def _database_error(error: DBAPIError | PoolTimeout) -> Response:
    log.warning("database.unreachable", error=type(error).__name__)
    return error_response(
        ServiceUnavailable(
            "The horde's database cannot be reached right now. Try again shortly.",
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )
    )


def _http_error(error: HTTPException) -> Response:
    if isinstance(error, RequestEntityTooLarge):
        return error_response(PayloadTooLarge("The body is larger than this route takes."))
    if error.code == NotFound.status:
        return error_response(NotFound("No such route. The native API is under /api/v2."))
    if error.code == MethodNotAllowed.status:
        return error_response(MethodNotAllowed("This route does not take that method."))
    return json_response({"message": error.description or error.name}, error.code or 500)


def _unexpected(error: Exception) -> Response:
    log.error("request.failed", error=type(error).__name__, exc_info=error)
    return error_response(HordeError("Internal Server Error"))


def register_errors(app: Flask) -> None:
    """Install the mapping."""
    app.register_error_handler(HordeError, error_response)
    app.register_error_handler(OperationalError, _database_error)
    app.register_error_handler(PoolTimeout, _database_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)
