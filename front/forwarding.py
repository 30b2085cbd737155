"""What of a client's request may reach a root, and what of its answer the client (details D9, D18)."""

import re
from collections.abc import Iterable, Mapping
from typing import cast
from urllib.parse import unquote

from hypercorn.typing import HTTPScope
from multidict import CIMultiDict
from quart import request

from front import errors
from front.errors import FrontError
from front.exchange import Exchange
from front.native import NativeApi

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that end at each connection."""

OURS = frozenset(
    {
        "expect",
        "forwarded",
        "front-authorization",
        "horde-repeat-key",
        "host",
        "proxied-for",
        "proxy-authorization",
        "remote-addr",
        "x-forwarded-for",
        "x-request-id",
    }
)
"""Headers that only the front, or Quart for it, may set on a request."""

NOT_BACK = HOP_BY_HOP | {"content-length", "date", "server"}
"""Headers of an answer that this server writes itself."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TRAVERSAL = re.compile(r"(?:^|[/\\])\.{1,2}(?:[/\\]|$)|[\\\x00-\x1f\x7f]")


def request_headers(native: NativeApi, exchange: Exchange) -> CIMultiDict[str]:
    """The client's headers without those it may not set, with ours.

    Raises FrontError (400) for a control character, which no header of HTTP may hold and no client of ours sends on.
    """
    given = cast("HTTPScope", request.scope)["headers"]
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in given]
    dropped = HOP_BY_HOP | OURS | _named_by_connection(pairs)
    # A WSGI server reads `Proxied_For` as `Proxied-For`.
    headers = CIMultiDict((name, value) for name, value in pairs if name.replace("_", "-") not in dropped)
    if any(_CONTROL.search(value) for value in headers.values()):
        raise FrontError(errors.not_http(400))
    native.vouch(headers, exchange.address)
    headers["X-Request-Id"] = exchange.request_id
    return headers


def response_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """A root's headers without those that end at our connection to it."""
    return [(name, value) for name, value in headers.items() if name.lower() not in NOT_BACK]


def target_path() -> str:
    """Path and query as the client wrote them.

    Raises FrontError (404) for a path that would lead out of its prefix.
    """
    scope = cast("HTTPScope", request.scope)
    raw = scope["raw_path"].decode("latin-1")
    decoded = unquote(raw)
    if _TRAVERSAL.search(decoded) or _TRAVERSAL.search(unquote(decoded)):
        raise FrontError(errors.unknown_route(request.method, decoded))
    query = scope["query_string"].decode("latin-1")
    return f"{raw}?{query}" if query else raw


def _named_by_connection(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    values = [value for name, value in pairs if name == "connection"]
    return frozenset(token.strip().lower() for value in values for token in value.split(","))
