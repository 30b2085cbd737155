"""Builds the native API."""

import time
from uuid import uuid4

import structlog
from flask import Flask, Response, g, request
from prometheus_client import Histogram

from app.api import (
    chat,
    documentation,
    documents,
    filters,
    health,
    internal,
    kudos,
    pages,
    register,
    reports,
    status,
    text,
    users,
    worker,
    workers,
)
from app.api.cross_origin import answer_preflight, open_to_all_origins
from app.api.errors import register_errors
from app.api.limits import limit_calls
from app.api.services import EXTENSION, build_services
from app.services.runtime import Runtime
from config.metrics import method_label

PREFIXES = ("/api/v2", "/v2")

LATENCY = Histogram("horde_native_seconds", "Time to answer a call of the native API.", ["route", "method", "status"])


def create_app(runtime: Runtime) -> Flask:
    """Build the Flask app over one runtime."""
    app = Flask("horde", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = runtime.settings.body_limit_bytes
    app.extensions[EXTENSION] = build_services(runtime)
    register_routes(app)
    register_errors(app)
    app.before_request(_begin)
    app.before_request(answer_preflight)
    app.after_request(_end)
    limit_calls(app)
    app.after_request(open_to_all_origins)
    return app


def register_routes(app: Flask) -> None:
    """Give the app its routes; the OpenAPI document can be made of them without a running horde."""
    # A redirect would turn a POST into an empty GET.
    app.url_map.merge_slashes = False
    for prefix in PREFIXES:
        name = prefix.strip("/").replace("/", "_")
        app.register_blueprint(chat.blueprint, url_prefix=prefix, name=f"chat_{name}")
        app.register_blueprint(text.blueprint, url_prefix=prefix, name=f"text_{name}")
        app.register_blueprint(worker.blueprint, url_prefix=prefix, name=f"worker_{name}")
        app.register_blueprint(kudos.blueprint, url_prefix=prefix, name=f"kudos_{name}")
        app.register_blueprint(users.blueprint, url_prefix=prefix, name=f"users_{name}")
        app.register_blueprint(workers.blueprint, url_prefix=prefix, name=f"workers_{name}")
        app.register_blueprint(status.blueprint, url_prefix=prefix, name=f"status_{name}")
        app.register_blueprint(documents.blueprint, url_prefix=prefix, name=f"documents_{name}")
        app.register_blueprint(filters.blueprint, url_prefix=prefix, name=f"filters_{name}")
        app.register_blueprint(reports.blueprint, url_prefix=prefix, name=f"reports_{name}")
    app.register_blueprint(documentation.blueprint)
    app.register_blueprint(register.blueprint)
    app.register_blueprint(pages.blueprint)
    app.register_blueprint(internal.blueprint)
    app.register_blueprint(health.blueprint)


def _begin() -> None:
    g.started = time.perf_counter()
    structlog.contextvars.bind_contextvars(call_id=_call_id())


def _call_id() -> str:
    """Take over the caller's id for logs when it is plainly one, else make one."""
    given = request.headers.get("X-Request-Id", "")
    return given if given.isascii() and given.isprintable() and 1 <= len(given) <= 64 else uuid4().hex


def _end(response: Response) -> Response:
    structlog.contextvars.unbind_contextvars("call_id")
    route = request.url_rule.rule if request.url_rule is not None else "unknown"
    LATENCY.labels(route, method_label(request.method), response.status_code).observe(time.perf_counter() - g.started)
    return response
