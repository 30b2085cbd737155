"""Health and metrics of a web process (operations O4)."""

from flask import Blueprint, Response

from app.api.errors import json_response
from app.api.services import services
from config.metrics import exposition

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
def alive() -> Response:
    """Say that the process lives."""
    return json_response({"status": "ok"})


@blueprint.get("/readyz")
def ready() -> Response:
    """Say whether every service that a request needs is reachable, and which is not."""
    checks = services().readiness()
    return json_response(
        {"status": "ok" if all(checks.values()) else "unavailable", "services": checks},
        200 if all(checks.values()) else 503,
    )


@blueprint.get("/metrics")
def metrics() -> Response:
    """Answer with this port's figures, of all its processes."""
    figures, content_type = exposition()
    return Response(figures, content_type=content_type)
