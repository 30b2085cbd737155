"""Rate limits around every route (native-api N6, wire reference 1.5)."""

import re
import time

from flask import Flask, Response, g, request

from app.api.callers import Calling, read_caller
from app.api.services import services
from app.domain.addresses import source_of
from app.domain.errors import TooManyCalls
from app.domain.rate_limits import SOURCES, LimitName, Source, limited_routes, limits_of_route
from app.domain.system_accounts import ANONYMOUS_KEY
from app.services.accounts import digest

_PREFIX = re.compile(r"^(?:/api)?/v2(?=/)")
_PART = re.compile(r"<[^>]*>")


def limit_calls(app: Flask) -> None:
    """Count every call against the limits of its route, and tell each answer what is left."""
    app.before_request(_count)
    app.after_request(_tell)


def _count() -> None:
    rule = request.url_rule
    if rule is None:
        return
    uses = services()
    calling = read_caller(request, uses.passkeys)
    is_fronts_own = calling.from_front and request.method != "POST"
    if is_fronts_own:
        return
    route = _PART.sub("<>", _PREFIX.sub("", rule.rule))
    names = limits_of_route(request.method, route, anonymous=calling.api_key == ANONYMOUS_KEY)
    allowance = uses.rate_limits.count((name, _source(name, route, calling)) for name in names)
    if allowance is None:
        return
    g.allowance = allowance
    if allowance.is_spent:
        wait = max(1, allowance.reset_at - int(time.time()))
        limit = allowance.limit
        raise TooManyCalls(
            f"Too many calls: at most {limit.calls} in {limit.seconds} seconds. Try again in {wait} seconds.",
            retry_after_seconds=wait,
        )


def rates_of(calling: Calling) -> list[dict[str, object]]:
    """Return what the caller has left of each limit; those of one path alone are not among them."""
    limits = list(limited_routes(anonymous=calling.api_key == ANONYMOUS_KEY))
    sources = [(name, _source(name, route.partition(" ")[2], calling)) for route, name in limits]
    return [
        {
            "route": route,
            "by": SOURCES.get(name, Source.ADDRESS).value,
            "calls": allowance.limit.calls,
            "seconds": allowance.limit.seconds,
            "remaining": max(0, allowance.left),
            "reset_at": allowance.reset_at,
        }
        for (route, name), allowance in zip(limits, services().rate_limits.look(sources), strict=True)
        if allowance is not None
    ]


def _source(name: LimitName, route: str, calling: Calling) -> str:
    """Whose call this is for a limit; those of addresses are counted by route (wire reference 1.5)."""
    kind = SOURCES.get(name, Source.ADDRESS)
    if kind is Source.KEY and calling.api_key:
        return digest(calling.api_key)[:32]
    address = source_of(calling.address) if calling.address else ""
    return f"{address} {request.path if kind is Source.PATH else route}"


def _tell(response: Response) -> Response:
    allowance = g.pop("allowance", None)
    if allowance is not None:
        response.headers.extend(allowance.headers())
    return response
