"""One HTTP exchange with a client: who it is, and what must happen when it ends.

Whatever a handler opens (a place in the admission, a call that may have to be
cancelled) it registers here; the gate closes the exchange when the server is done
with it, also when a stream's generator was never started.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from hypercorn.typing import HTTPScope
from quart import request

from front import errors
from front.errors import FrontError, Problem

log = logging.getLogger(__name__)

_KEY = "exchange"


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its answer."""

    request_id: str
    address: str
    body_limit: int
    started: float = field(default_factory=time.monotonic)
    body_too_large: bool = False
    _closers: list[Callable[[], None]] = field(default_factory=list)

    def on_close(self, closer: Callable[[], None]) -> None:
        """Call `closer` once when the exchange ends, however it ends."""
        self._closers.append(closer)

    def close(self) -> None:
        """Run what was registered, last first."""
        while self._closers:
            try:
                self._closers.pop()()
            except Exception:
                log.exception("closing an exchange failed")


def attach(scope: HTTPScope, exchange: Exchange) -> None:
    """Put the exchange where the handlers find it."""
    scope["state"][_KEY] = exchange


def current_exchange() -> Exchange:
    """The exchange of the request that is being handled."""
    return cast("Exchange", cast("HTTPScope", request.scope)["state"][_KEY])


async def read_body(exchange: Exchange, seconds: float) -> bytes:
    """The whole request body; nothing of it stays in the request object.

    Raises FrontError: 408 when it is slow, 413 when it is too large, 415 when it is compressed.
    """
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        raise FrontError(errors.encoded_body(encoding[:40]))
    try:
        async with asyncio.timeout(seconds):
            body: bytes = await request.body
    except TimeoutError:
        raise FrontError(body_problem(exchange, seconds)) from None
    request.body.clear()
    if exchange.body_too_large:
        raise FrontError(body_problem(exchange, seconds))
    return body


def body_problem(exchange: Exchange, seconds: float) -> Problem:
    """Why a body cannot be taken: it is too large, which is said first, or did not come in time."""
    if exchange.body_too_large:
        return errors.body_too_large(exchange.body_limit)
    return errors.body_too_slow(seconds)
