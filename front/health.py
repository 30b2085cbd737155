"""Is the process alive, can it serve, what does it count (operations O4)."""

import asyncio
import time

from quart import Blueprint, Response

from front.context import Front
from front.metrics import CONTENT_TYPE
from front.responses import json_response
from front.wire import encode

CHECK_SECONDS = 1.0
"""Longest check of one service, and how long its result is good."""


class Readiness:
    """Which services can be reached, asked at most once a second."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._native_alive = False
        self._checked_at = float("-inf")
        self._lock = asyncio.Lock()

    async def services(self) -> dict[str, bool]:
        """Every service the front needs, and whether it is there."""
        async with self._lock:
            if time.monotonic() >= self._checked_at + CHECK_SECONDS:
                self._native_alive = await self._front.native.alive(CHECK_SECONDS)
                self._checked_at = time.monotonic()
        return {"native": self._native_alive, "redis": self._front.doorbell.connected}


def health_blueprint(front: Front) -> Blueprint:
    """`/healthz`, `/readyz`, `/metrics`."""
    blueprint = Blueprint("health", __name__)
    readiness = Readiness(front)

    @blueprint.get("/healthz")
    async def healthz() -> Response:
        return json_response(encode({"status": "alive"}))

    @blueprint.get("/readyz")
    async def readyz() -> Response:
        services = await readiness.services()
        missing = sorted(name for name, there in services.items() if not there)
        ready = not missing and not front.drain.started
        body = {
            "status": "ready" if ready else "not ready",
            "draining": front.drain.started,
            "services": {name: "reachable" if there else "unreachable" for name, there in services.items()},
            "unreachable": missing,
        }
        return json_response(encode(body), 200 if ready else 503)

    @blueprint.get("/metrics")
    async def metrics() -> Response:
        return Response(front.metrics.render(), content_type=CONTENT_TYPE)

    return blueprint
