"""Health and metrics of a web process (operations O4)."""

import os

from flask import Blueprint, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest, multiprocess

from app.api.errors import json_response
from app.api.services import services

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
    registry: CollectorRegistry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
