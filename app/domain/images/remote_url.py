"""The form of a URL that an image may be fetched from (images I3, reliability D1)."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from app.domain.errors import ContractRefusal
from app.domain.images.public_addresses import is_public

PORTS = {"http": 80, "https": 443}
"""Schemes that are fetched, with the only port that each may name."""

_LONGEST = 8192
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9a-fA-F:.]{2,45}")
_SUSPICIOUS = re.compile(r"[\\\s\x00-\x20\x7f-\x9f]")
_TARGET_SAFE = "/%?&=+$,;:@!'()*~-._[]|"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteUrl:
    """A URL in its parts. `is_allowed` says that the operator listed its host, whatever its address."""

    scheme: str
    host: str
    port: int
    target: str
    is_allowed: bool = False

    @property
    def host_header(self) -> str:
        """The Host header: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def base(self) -> str:
        """The URL that a relative redirect counts from."""
        return f"{self.scheme}://{self.host_header}{self.target}"


def parse_remote_url(url: str, path: str, allowed_hosts: frozenset[str] = frozenset()) -> RemoteUrl:
    """The URL of the image at `path`.

    Raises ContractRefusal (`invalid_image_url`) for anything but a plain http or https URL of a
    public host. Whether a name leads to a public address is seen when it is resolved.
    """
    if len(url) > _LONGEST or _SUSPICIOUS.search(url):
        raise _refused(path, "it is too long, or holds spaces, backslashes or control characters.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused(path, "it cannot be read as a URL.") from None
    if parts.scheme not in PORTS or not host:
        raise _refused(path, "only http and https URLs with a host are fetched.")
    if parts.username is not None or parts.password is not None:
        raise _refused(path, "it may not hold a user name or a password.")
    host = _ascii_host(host, path)
    chosen = PORTS[parts.scheme] if port is None else port
    allowed = f"{host}:{chosen}" in allowed_hosts
    if not allowed:
        _require_plain(host, chosen, parts.scheme, path)
    query = f"?{parts.query}" if parts.query else ""
    target = quote(f"{parts.path or '/'}{query}", safe=_TARGET_SAFE)
    return RemoteUrl(scheme=parts.scheme, host=host, port=chosen, target=target, is_allowed=allowed)


def not_allowed(path: str) -> ContractRefusal:
    """The one refusal of an address, whatever is there."""
    return _refused(path, "its address is not allowed. Images are fetched from public addresses only.")


def _require_plain(host: str, port: int, scheme: str, path: str) -> None:
    if port != PORTS[scheme]:
        raise _refused(path, f"only port {PORTS[scheme]} is used for {scheme}.")
    try:
        ip_address(host)
    except ValueError:
        return
    if not is_public(host):
        raise not_allowed(path)


def _ascii_host(host: str, path: str) -> str:
    try:
        encoded = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        encoded = ""
    if not _HOST.fullmatch(encoded):
        raise _refused(path, "its host name cannot be used.")
    return encoded.lower()


def _refused(path: str, reason: str) -> ContractRefusal:
    return ContractRefusal(f"Invalid image at '{path}': {reason}", param=path, code="invalid_image_url")
