"""Who is calling: the headers that carry keys, passkeys and vouched addresses (details D18)."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol
from uuid import UUID

from flask import Request

from app.domain.errors import BadRequest
from app.services.request_status import unknown_request

LARGEST_DEADLINE_SECONDS = 24 * 3600


class PasskeyCheck(Protocol):
    """Accepts a service account's passkey, or raises OnlyServiceAccountProxy."""

    def check(self, passkey: str) -> None:
        """Accept the passkey."""


@dataclass(frozen=True, slots=True)
class Calling:
    """What the headers of a call say."""

    api_key: str | None
    address: str
    from_front: bool

    def require_key(self) -> str:
        """Return the key.

        Raises BadRequest when the call has none.
        """
        return _present(self.api_key)


def require_key(horde_request: Request) -> str:
    """Return the key of a call for which no other header matters.

    Raises BadRequest when it has none.
    """
    return _present(horde_request.headers.get("apikey"))


def _present(api_key: str | None) -> str:
    if not api_key:
        raise BadRequest("apikey: this header is required. 0000000000 is the anonymous key.", param="apikey")
    return api_key


def read_caller(horde_request: Request, passkeys: PasskeyCheck) -> Calling:
    """Read a call's headers.

    Raises OnlyServiceAccountProxy when a passkey is not a service account's, and
    BadRequest when a vouched address is none.
    """
    headers = horde_request.headers
    front_passkey = headers.get("Front-Authorization")
    if front_passkey is not None:
        passkeys.check(front_passkey)
    return Calling(
        api_key=headers.get("apikey"),
        address=_address(horde_request, passkeys),
        from_front=front_passkey is not None,
    )


def _address(horde_request: Request, passkeys: PasskeyCheck) -> str:
    vouched = horde_request.headers.get("Proxied-For")
    if vouched is None:
        return horde_request.remote_addr or ""
    passkeys.check(horde_request.headers.get("Proxy-Authorization", ""))
    try:
        return str(ip_address(vouched.strip()))
    except ValueError:
        raise BadRequest("Proxied-For: must be an IP address.", param="Proxied-For") from None


def proposed_id(horde_request: Request, calling: Calling) -> UUID | None:
    """Return the id that a front proposes for the request; nobody else may propose one."""
    value = horde_request.headers.get("Horde-Request-Id")
    if value is None or not calling.from_front:
        return None
    try:
        return UUID(value)
    except ValueError:
        raise BadRequest("Horde-Request-Id: must be a UUID.", param="Horde-Request-Id") from None


def deadline_seconds(horde_request: Request) -> int | None:
    """Return how many seconds the client of a front will still wait (details D1)."""
    value = horde_request.headers.get("Horde-Deadline")
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= LARGEST_DEADLINE_SECONDS):
        raise BadRequest("Horde-Deadline: must be whole seconds, 1 to 86400.", param="Horde-Deadline")
    return int(value)


def request_id_in(path_part: str) -> UUID:
    """Return the request id in a path.

    Raises RequestNotFound when it is none.
    """
    try:
        return UUID(path_part)
    except ValueError:
        raise unknown_request() from None
