"""Health and metrics of a Celery process, on a port of its own (operations O4)."""

import json
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import structlog

from app.services.live_figures import ServiceFigures
from app.services.readiness import readiness
from app.services.runtime import Runtime
from config.metrics import exposition
from config.settings import get_settings

log = structlog.get_logger(__name__)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a defect as an event; whoever asked and did not wait for the answer is none."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            log.error("request.failed", error=type(error).__name__, exc_info=error)


def serve_health(runtime: Callable[[], Runtime], port: int, *, keeps_objects: bool = False) -> ThreadingHTTPServer:
    """Serve /healthz, /readyz and /metrics from a thread of this process."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers: dict[str, Callable[[], tuple[int, str, bytes]]] = {
                "/healthz": _alive,
                "/readyz": lambda: _ready(runtime(), keeps_objects=keeps_objects),
                "/metrics": lambda: _metrics(runtime(), keeps_objects=keeps_objects),
            }
            answer = answers.get(self.path)
            status, kind, body = answer() if answer else (404, "application/json", b'{"message": "No such route."}')
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay silent: scrapes are no events."""

    server = _Server((get_settings().horde_bind_host, port), Handler)
    Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server


def _alive() -> tuple[int, str, bytes]:
    return 200, "application/json", b'{"status": "ok"}'


def _ready(runtime: Runtime, *, keeps_objects: bool) -> tuple[int, str, bytes]:
    checks = readiness(runtime, keeps_objects=keeps_objects)
    good = all(checks.values())
    body = json.dumps({"status": "ok" if good else "unavailable", "services": checks})
    return 200 if good else 503, "application/json", body.encode()


def _metrics(runtime: Runtime, *, keeps_objects: bool) -> tuple[int, str, bytes]:
    figures, content_type = exposition(ServiceFigures(runtime, keeps_objects=keeps_objects))
    return 200, content_type, figures
