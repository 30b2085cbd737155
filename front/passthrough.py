"""One door: the native API's public paths, streamed to a root and back (front F7, details D9, D18).

Never `/internal`, `/metrics`, `/readyz` or another service: only the paths below.
"""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
from quart import Blueprint, Response, request
from yarl import URL

from front import errors
from front.bodies import body_problem
from front.context import Front
from front.errors import FrontError, Problem
from front.exchange import Exchange, current_exchange
from front.forwarding import request_headers, response_headers, target_path
from front.native import CONNECT_SECONDS, NEVER_SENT
from front.responses import native_problem

PATHS = (
    "/api/v2/<path:rest>",
    "/v2/<path:rest>",
    "/api",
    "/api/",
    "/api/openapi.json",
    "/api/ui/<path:rest>",
    "/register",
    "/status",
    "/privacy",
    "/terms",
    "/sponsors",
    "/.well-known/<path:rest>",
)
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

READS = frozenset({"GET", "HEAD"})

IDLE_SECONDS = 60.0
"""Longest silence of a root."""

GATHERED_BYTES = 256 * 1024
"""Answers up to this size go out in one piece."""


def passthrough_blueprint(front: Front) -> Blueprint:
    """The listed paths."""
    blueprint = Blueprint("passthrough", __name__)

    async def forward(rest: str = "") -> Response:
        del rest  # the path goes on as the client wrote it
        exchange = current_exchange()
        try:
            release = front.admission.hold()
            if release is None:
                raise FrontError(errors.at_capacity("on this server"))
            exchange.on_close(release)
            return await _Forwarded(front, exchange).answer()
        except FrontError as error:
            return native_problem(error.problem)

    for number, path in enumerate(PATHS):
        blueprint.add_url_rule(path, f"forward_{number}", forward, methods=METHODS, provide_automatic_options=False)
    return blueprint


class _Forwarded:
    """One request on its way to a root."""

    def __init__(self, front: Front, exchange: Exchange) -> None:
        self._front = front
        self._exchange = exchange
        self._fault: Problem | None = None

    async def answer(self) -> Response:
        """The root's answer.

        Raises FrontError when no root answers, or when the body breaks a limit.
        """
        path = target_path()
        headers = request_headers(self._front.native, self._exchange)
        has_body = "content-length" in headers or request.headers.get("Transfer-Encoding") is not None
        roots = self._front.native.roots
        for root in roots.in_turn():
            try:
                upstream = await self._front.native.session.request(
                    request.method,
                    URL(f"{root}{path}", encoded=True),
                    headers=headers,
                    data=self._body() if has_body else None,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=IDLE_SECONDS),
                    allow_redirects=False,
                )
            except NEVER_SENT:
                roots.failed(root)
                continue
            except (TimeoutError, aiohttp.ClientError, OSError):
                if has_body or request.method not in READS:
                    break
                # Nothing is done twice by reading again where a root died over its answer.
                roots.failed(root)
                continue
            roots.answered(root)
            self._exchange.on_close(upstream.close)
            return await self._returned(upstream)
        raise FrontError(self._fault or errors.unreachable())

    async def _body(self) -> AsyncIterator[bytes]:
        """The client's body within its limits. What breaks one is kept for the answer."""
        seconds = self._front.settings.body_read_seconds
        try:
            async with asyncio.timeout(seconds):
                async for chunk in request.body:
                    yield chunk
        except TimeoutError:
            self._fault = body_problem(self._exchange, seconds)
            raise
        if self._exchange.body_too_large:
            self._fault = body_problem(self._exchange, seconds)
            raise FrontError(self._fault)

    async def _returned(self, upstream: aiohttp.ClientResponse) -> Response:
        length = upstream.content_length
        if request.method == "HEAD" or (length is not None and length <= GATHERED_BYTES):
            try:
                body = await upstream.read()
            except (TimeoutError, aiohttp.ClientError) as error:
                raise FrontError(errors.unreachable()) from error
            response = Response(body, status=upstream.status)
        else:
            response = Response(upstream.content.iter_any(), status=upstream.status)
            # Each wait has its own limit: a root's silence, and a client that takes nothing.
            response.timeout = None
        response.headers.clear()
        response.headers.extend(response_headers(upstream.headers))
        if length is not None:
            response.headers["Content-Length"] = str(length)
        return response
