"""How often a source may call a route: fixed windows, as existing clients know them (wire reference 1.5).

The numbers are settings. Where clients poll they are far above what any client does, and nobody
is put on a list of exceptions: the figures that the wire reference keeps for listed addresses are
everybody's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

PARTS = 20
"""A process tells the others of its calls each time that it counted this part of a limit."""


class LimitName(StrEnum):
    """Every limit; each is a setting `rate_...` of this name."""

    DEFAULT = "default_per_minute"
    SUBMIT_ADDRESS_MINUTE = "submit_per_minute"
    SUBMIT_ADDRESS_SECOND = "submit_per_second"
    SUBMIT_KEY = "submit_key_per_second"
    SUBMIT_ANONYMOUS = "submit_anonymous_per_second"
    STATUS = "status_per_minute"
    WORKER_CALLS = "worker_calls_per_second"
    WORKER_PAGE = "worker_page_per_minute"
    USER_PAGE = "user_page_per_minute"
    SHARED_KEYS = "shared_keys_per_minute"
    TRANSFERS_SECOND = "transfers_per_second"
    TRANSFERS_HOUR = "transfers_per_hour"
    MODES = "modes_per_minute"
    REGISTER_MINUTE = "register_per_minute"
    REGISTER_HOUR = "register_per_hour"
    REGISTER_DAY = "register_per_day"
    REPORTS = "reports_per_hour"

    @property
    def seconds(self) -> int:
        """How long its window is."""
        return {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}[self.value.rpartition("_")[2]]


class Source(StrEnum):
    """Whose calls a limit counts together."""

    ADDRESS = "address"
    KEY = "key"
    PATH = "path"
    """An address's calls of one path, such as the status of one request."""


SOURCES: Mapping[LimitName, Source] = {
    LimitName.SUBMIT_KEY: Source.KEY,
    LimitName.SUBMIT_ANONYMOUS: Source.KEY,
    LimitName.TRANSFERS_SECOND: Source.KEY,
    LimitName.TRANSFERS_HOUR: Source.KEY,
    LimitName.REPORTS: Source.KEY,
    LimitName.STATUS: Source.PATH,
    LimitName.WORKER_PAGE: Source.PATH,
    LimitName.USER_PAGE: Source.PATH,
}
"""What each limit counts by, where that is not the address."""

_SUBMIT = (LimitName.SUBMIT_ADDRESS_MINUTE, LimitName.SUBMIT_ADDRESS_SECOND, LimitName.SUBMIT_KEY)
_ROUTES: Mapping[str, tuple[LimitName, ...]] = {
    "POST /generate/text/async": _SUBMIT,
    "POST /generate/chat/async": _SUBMIT,
    "GET /generate/text/status/<>": (LimitName.STATUS,),
    "DELETE /generate/text/status/<>": (LimitName.STATUS,),
    "GET /generate/chat/status/<>": (LimitName.STATUS,),
    "DELETE /generate/chat/status/<>": (LimitName.STATUS,),
    "POST /generate/text/pop": (LimitName.WORKER_CALLS,),
    "POST /generate/text/submit": (LimitName.WORKER_CALLS,),
    "GET /generate/chat/models": (LimitName.DEFAULT,),
    "GET /workers/<>": (LimitName.WORKER_PAGE,),
    "PUT /workers/<>": (LimitName.WORKER_PAGE,),
    "DELETE /workers/<>": (LimitName.WORKER_PAGE,),
    "GET /users/<>": (LimitName.USER_PAGE,),
    "PUT /users/<>": (LimitName.USER_PAGE,),
    "DELETE /users/<>": (LimitName.USER_PAGE,),
    "PUT /sharedkeys": (LimitName.SHARED_KEYS,),
    "POST /kudos/transfer": (LimitName.TRANSFERS_SECOND, LimitName.TRANSFERS_HOUR),
    "GET /status/modes": (LimitName.MODES,),
    "PUT /status/modes": (LimitName.MODES,),
    "GET /status/heartbeat": (),
    "POST /register": (LimitName.REGISTER_MINUTE, LimitName.REGISTER_HOUR, LimitName.REGISTER_DAY),
    "POST /reports": (LimitName.REPORTS,),
}

_UNLIMITED = ("/generate/", "/internal/", "/healthz", "/readyz", "/metrics")
"""Beginnings of paths without a limit of their own: work under a lease, the front's own calls, an operator's probes."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many calls of one source within each window; 0 calls mean that there is no limit."""

    name: LimitName
    calls: int

    @property
    def seconds(self) -> int:
        """How long its window is."""
        return self.name.seconds

    @property
    def source(self) -> Source:
        """Whose calls it counts together."""
        return SOURCES.get(self.name, Source.ADDRESS)

    @property
    def part(self) -> int:
        """Calls that a process counts by itself before it tells the others."""
        return max(1, self.calls // PARTS)


def limits_of_route(method: str, route: str, *, anonymous: bool) -> tuple[LimitName, ...]:
    """Return the limits of a route, written as below `/api/v2` with `<>` for its parts.

    Those who use the anonymous key share one limit by key, so it is a larger one.
    """
    found = _ROUTES.get(f"{'GET' if method == 'HEAD' else method} {route}")
    if found is None:
        return () if route.startswith(_UNLIMITED) else (LimitName.DEFAULT,)
    if not anonymous:
        return found
    return tuple(LimitName.SUBMIT_ANONYMOUS if name is LimitName.SUBMIT_KEY else name for name in found)


def limited_routes(*, anonymous: bool) -> Iterator[tuple[str, LimitName]]:
    """Yield each limit of each route, but those of one path alone, of which there are as many as paths."""
    for route in _ROUTES:
        method, _, path = route.partition(" ")
        for name in limits_of_route(method, path, anonymous=anonymous):
            if SOURCES.get(name) is not Source.PATH:
                yield route, name


def spoken(seconds: int) -> str:
    """Say a wait to a person, rounded up to the largest unit that it fills: `40 seconds`, `2 minutes`, `3 hours`."""
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = -(-seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds} second{'s' if seconds != 1 else ''}"
