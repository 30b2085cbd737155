"""What every HTTP exchange passes before Quart and after it.

The gate gives an exchange its id and the client's address, mends common slips in
paths, answers preflights, bounds the body and each send, adds the headers that
every answer carries, notes it in the access log, and closes the exchange.
"""

import asyncio
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import structlog
from hypercorn.typing import (
    ASGIFramework,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
    Scope,
)

from front import errors
from front.addresses import Network, client_address, is_known_proxy
from front.drain import Drain
from front.exchange import Exchange, attach
from front.metrics import FrontMetrics

SEND_SECONDS = 30.0
"""Longest wait for a client to take what was sent; then it is dropped (reliability B6)."""

DISCARD_FACTOR = 8
"""How much of a body beyond the limit is read and thrown away, so that the client hears the 413."""

IMAGE_PATHS = frozenset({"/v1/chat/completions", "/api/v2/generate/chat/async", "/v2/generate/chat/async"})
"""Paths whose bodies may hold images."""

ALWAYS_OPEN = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that answer during a drain too."""

REPEAT_KEY_HEADER = b"horde-repeat-key"
"""What a proxy that tries a call again says with each try, so that a second front takes it for the same call."""

MAY_HOLD_IMAGES = ("/chat/completions", "/generate/chat/async")
"""Ends of the paths whose bodies may be larger. Without images they may not: the handlers see to that."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_REPEAT_KEY = re.compile(r"[A-Za-z0-9_-]{22,64}")
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")
_WITHOUT_PREFIX = re.compile(r"/(?:chat/completions|models(?:/.+)?)")

_SECRETIVE = re.compile(r"/[^/]{20,}")
"""A part of a path that is long enough for a key: some native routes name shared keys in their paths."""

LONGEST_METHOD = 16

log = structlog.get_logger(__name__)

Headers = list[tuple[bytes, bytes]]

_CORS: Headers = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"x-request-id, retry-after, x-should-retry"),
]
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE, OPTIONS"),
    (b"access-control-max-age", b"86400"),
    (b"vary", b"Access-Control-Request-Headers"),
    (b"content-length", b"0"),
]
_DEFAULT_ALLOWED = b"authorization, content-type, apikey, client-agent"


@dataclass(frozen=True, slots=True)
class GateLimits:
    """What the gate bounds."""

    body_bytes: int
    image_body_bytes: int
    trusted_proxies: int | tuple[Network, ...]
    send_seconds: float = SEND_SECONDS


def canonical_path(path: str) -> str:
    """The path that is meant, for OpenAI's routes: no doubled slash or prefix, none at the end, `/v1` in front.

    Other paths stay as they are.
    """
    mended = re.sub(r"/{2,}", "/", path)
    while mended.startswith("/v1/v1/"):
        mended = mended.removeprefix("/v1")
    mended = mended.rstrip("/")
    if mended.startswith("/v1/"):
        return mended
    return f"/v1{mended}" if _WITHOUT_PREFIX.fullmatch(mended) else path


class Gate:
    """The ASGI application that Hypercorn serves."""

    def __init__(self, app: ASGIFramework, limits: GateLimits, drain: Drain, metrics: FrontMetrics) -> None:
        self._app = app
        self._limits = limits
        self._drain = drain
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1000, "reason": "not served"})

    async def _serve(self, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        given = _headers_of(scope)
        peer = scope["client"][0] if scope["client"] else None
        exchange = Exchange(
            request_id=_request_id(given.get(b"x-request-id")),
            address=client_address(
                peer,
                [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"],
                self._limits.trusted_proxies,
            ),
            body_limit=self._limits.body_bytes,
            repeat_key=_repeat_key(given, peer, self._limits.trusted_proxies),
        )
        reply = _Sender(send, exchange, self._limits.send_seconds)
        try:
            await self._answer(scope, receive, reply, exchange, given)
        finally:
            self._metrics.call_ended(exchange.route, scope["method"], reply.status, time.monotonic() - exchange.started)

    async def _answer(
        self,
        scope: HTTPScope,
        receive: ASGIReceiveCallable,
        reply: "_Sender",
        exchange: Exchange,
        given: dict[bytes, bytes],
    ) -> None:
        if scope["method"] == "OPTIONS":
            exchange.route = "preflight"
            await reply.preflight(given.get(b"access-control-request-headers"))
            return
        _mend_path(scope)
        if self._drain.started and scope["path"] not in ALWAYS_OPEN:
            peer = scope["client"][0] if scope["client"] else None
            if self._drain.ended or not is_known_proxy(peer, self._limits.trusted_proxies):
                exchange.route = "draining"
                await reply.draining(scope["path"])
                return
            # It came over a connection that the proxy had kept: the last one that does.
            reply.closes_connection = True
        if scope["path"] in IMAGE_PATHS:
            exchange.body_limit = self._limits.image_body_bytes
        attach(scope, exchange)
        counted = scope["path"] not in ALWAYS_OPEN
        if counted:
            self._drain.enter()
        try:
            await self._app(scope, _BoundedBody(receive, exchange), reply)
        finally:
            exchange.close()
            if counted:
                self._drain.leave()
                _note(scope, exchange, reply.status)


class _BoundedBody:
    """Hands a body on up to the limit, and throws the rest away so that an answer can still be heard."""

    def __init__(self, receive: ASGIReceiveCallable, exchange: Exchange) -> None:
        self._receive = receive
        self._exchange = exchange
        self._seen = 0

    async def __call__(self) -> ASGIReceiveEvent:
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._seen += len(message["body"])
            limit = self._exchange.body_limit
            if self._seen <= limit:
                return message
            self._exchange.body_too_large = True
            if not message["more_body"] or self._seen > limit * DISCARD_FACTOR:
                return {"type": "http.request", "body": b"", "more_body": False}


class _Sender:
    """Sends with a time limit each, and puts our headers on the answer."""

    def __init__(self, send: ASGISendCallable, exchange: Exchange, seconds: float) -> None:
        self.status: int | None = None
        self.closes_connection = False
        self._send = send
        self._exchange = exchange
        self._seconds = seconds

    async def __call__(self, message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own: Headers = [(b"x-request-id", self._exchange.request_id.encode()), *_CORS]
            names = {name for name, _ in own}
            kept = [pair for pair in message["headers"] if pair[0].lower() not in names]
            closing: Headers = [(b"connection", b"close")] if self.closes_connection else []
            message["headers"] = [*kept, *own, *closing]
        async with asyncio.timeout(self._seconds):
            await self._send(message)

    async def preflight(self, asked: bytes | None) -> None:
        """Allow what a browser asks for, on every path and without a key."""
        allowed = asked if asked is not None and _HEADER_NAMES.fullmatch(asked) else _DEFAULT_ALLOWED
        await self._answer(204, [*_PREFLIGHT, (b"access-control-allow-headers", allowed)], b"")

    async def draining(self, path: str) -> None:
        """Send a newcomer away, and its connection with it."""
        problem = errors.draining()
        body = problem.envelope() if path.startswith("/v1") else problem.native_body()
        headers: Headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *((name.lower().encode(), value.encode()) for name, value in problem.headers().items()),
        ]
        await self._answer(problem.status, headers, body)

    async def _answer(self, status: int, headers: Headers, body: bytes) -> None:
        start: Any = {"type": "http.response.start", "status": status, "headers": headers}
        await self(start)
        await self({"type": "http.response.body", "body": body, "more_body": False})


def _note(scope: HTTPScope, exchange: Exchange, status: int | None) -> None:
    """One line of the access log: no query, no header, no body, and of a path nothing that could be a key."""
    log.info(
        "request",
        call_id=exchange.request_id,
        method=scope["method"][:LONGEST_METHOD],
        path=_SECRETIVE.sub("/...", scope["path"])[: errors.LONGEST_ECHO],
        status=status,
        seconds=round(time.monotonic() - exchange.started, 3),
    )


def _headers_of(scope: HTTPScope) -> dict[bytes, bytes]:
    return {name.lower(): value for name, value in scope["headers"]}


def _request_id(given: bytes | None) -> str:
    """The id that a proxy in front gave, when it looks like one; a new one otherwise."""
    text = (given or b"").decode("latin-1")
    return text if _REQUEST_ID.fullmatch(text) else f"req_{secrets.token_hex(12)}"


def _repeat_key(given: dict[bytes, bytes], peer: str | None, trusted: int | tuple[Network, ...]) -> str | None:
    """The key that a known proxy gave this call; anybody else's is nothing to us (details D9)."""
    text = given.get(REPEAT_KEY_HEADER, b"").decode("latin-1")
    return text if is_known_proxy(peer, trusted) and _REPEAT_KEY.fullmatch(text) else None


def _path_of(url: str) -> str:
    """The path of an absolute URL; the root for what is none."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = "/"
    return path if path.startswith("/") else "/"


def _mend_path(scope: HTTPScope) -> None:
    if not scope["path"].startswith("/"):
        # A proxy's absolute form: only the path of it counts.
        raw = _path_of(scope["raw_path"].decode("latin-1"))
        scope["raw_path"] = raw.encode("latin-1")
        scope["path"] = unquote(raw)
    scope["path"] = canonical_path(scope["path"])
