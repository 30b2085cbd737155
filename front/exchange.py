"""One HTTP exchange with a client: who it is, and what must happen when it ends.

Whatever a handler opens (a place in the admission, a call that may have to be
cancelled) it registers here; the gate closes the exchange when the server is done
with it, also when a stream's generator was never started.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from hypercorn.typing import HTTPScope
from quart import request

log = logging.getLogger(__name__)

_KEY = "exchange"


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its answer."""

    request_id: str
    address: str
    body_limit: int
    repeat_key: str | None = None
    """The same at every front that a known proxy brings this call to; None without such a proxy."""
    started: float = field(default_factory=time.monotonic)
    body_too_large: bool = False
    route: str = "unknown"
    _body: Callable[[], None] = field(default=lambda: None)
    _closers: list[Callable[[], None]] = field(default_factory=list)

    def on_close(self, closer: Callable[[], None]) -> None:
        """Call `closer` once when the exchange ends, however it ends."""
        self._closers.append(closer)

    def hold_body(self, release: Callable[[], None]) -> None:
        """Call `release` when the body is let go, at the latest at the end."""
        self._body = release
        self.on_close(release)

    def let_body_go(self) -> None:
        """The body is needed no more."""
        self._body()

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
