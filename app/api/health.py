"""Health and metrics of a web process (operations O4)."""

from flask import Blueprint, Response

from app.api import shapes
from app.api.errors import json_response
from app.api.operations import Operation, documented
from app.api.services import services

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
@documented(Operation(tag="health", answers={200: shapes.Alive}))
def alive() -> Response:
    """Say that the process lives."""
    return json_response({"status": "ok"})


@blueprint.get("/readyz")
@documented(Operation(tag="health", answers={200: shapes.Ready, 503: shapes.Ready}))
def ready() -> Response:
    """Say whether every service that a request needs is reachable, and which is not."""
    checks = services().readiness()
    return json_response(
        {"status": "ok" if all(checks.values()) else "unavailable", "services": checks},
        200 if all(checks.values()) else 503,
    )


@blueprint.get("/metrics")
@documented(Operation(tag="health", answers={200: "text/plain"}))
def metrics() -> Response:
    """Answer with this port's figures, of all its processes, and what the horde holds right now."""
    figures, content_type = services().exposition()
    return Response(figures, content_type=content_type)
