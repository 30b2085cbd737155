"""Fetches an image by its URL, so that nothing inside the network can be reached (images I3, reliability D1).

A name is resolved once, all of its addresses must be public, and the connection goes to one
of those that were checked, with the name in Host and SNI. Redirects are followed here, each
from the start. Proxies of the environment are not used, for nothing here reads them.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from dataclasses import dataclass, field
from http.client import HTTPException
from time import monotonic
from typing import IO
from urllib.parse import urljoin

from prometheus_client import Counter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from app.domain.errors import ContractRefusal
from app.domain.images.parts import (
    FETCH_FAILED,
    FORMATS,
    PARSE_ERROR,
    TOO_LARGE,
    begins_as_image,
    image_refusal,
    shown_bytes,
)
from app.domain.images.public_addresses import is_public
from app.domain.images.remote_url import RemoteUrl, not_allowed, parse_remote_url

MOST_REDIRECTS = 3
MOST_ADDRESSES = 3
CONNECT_SECONDS = 4.0
READ_BYTES = 2**16
START_BYTES = 12
"""As many as tell the format; less than that is broken off, and its decoder will say so."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
USER_AGENT = "horde-image-fetch"

IMAGES_FETCHED = Counter("horde_images_fetched", "Images that were fetched by their URL.", ["outcome"])

Resolver = Callable[[str, int], list[str]]
"""All addresses of a name, as text. Raises OSError when it has none."""

Connection = HTTPConnection | HTTPSConnection

_resolving = ThreadPoolExecutor(4, thread_name_prefix="resolve")


def system_resolver(host: str, port: int) -> list[str]:
    """Return what the system's resolver knows. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRules:
    """What bounds a fetch. `allowed_hosts` are those that may be private; `seconds` is for all of it."""

    seconds: float
    most_bytes: int
    allowed_hosts: frozenset[str] = frozenset()
    resolve: Resolver = system_resolver
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)


class _Deadline:
    """The moment at which everything that is still open is shut, however busy the other side keeps it."""

    def __init__(self, seconds: float) -> None:
        self.at = monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.01, self.at - monotonic())

    @property
    def is_over(self) -> bool:
        return monotonic() >= self.at

    @contextlib.contextmanager
    def over(self, connection: socket.socket) -> Iterator[None]:
        """Shut the connection at the deadline, while the block runs.

        A copy of the descriptor is shut: TLS takes the connection's own away.
        """
        with connection.dup() as watched:
            timer = threading.Timer(self.left, _shut, (watched,))
            timer.daemon = True
            timer.start()
            try:
                yield
            finally:
                timer.cancel()
                timer.join()


def fetch(url: str, path: str, target: IO[bytes], rules: FetchRules) -> int:
    """Write what the URL of the image at `path` leads to into `target`; return its size in bytes.

    Raises ContractRefusal: `invalid_image_url`, `image_too_large`, `image_parse_error` or `image_fetch_failed`.
    """
    deadline = _Deadline(rules.seconds)
    remote = parse_remote_url(url, path, rules.allowed_hosts)
    try:
        for _ in range(MOST_REDIRECTS + 1):
            size, location = _hop(remote, path, target, rules, deadline)
            if location is None:
                IMAGES_FETCHED.labels("done").inc()
                return size
            remote = parse_remote_url(_joined(remote, location), path, rules.allowed_hosts)
        raise image_refusal(path, FETCH_FAILED, f"it redirects more than {MOST_REDIRECTS} times.")
    except ContractRefusal:
        IMAGES_FETCHED.labels("refused").inc()
        raise


def _hop(
    remote: RemoteUrl, path: str, target: IO[bytes], rules: FetchRules, deadline: _Deadline
) -> tuple[int, str | None]:
    """Ask one server: the size of what it sent, or where it redirects to."""
    opened = _connected(_addresses_of(remote, path, rules, deadline), remote.port, path, deadline)
    with contextlib.ExitStack() as closing:
        closing.callback(opened.close)
        connection = _connection(remote, opened, rules)
        closing.callback(connection.close)
        try:
            closing.enter_context(deadline.over(opened))
            opened.settimeout(deadline.left)
            response = _asked(connection, remote)
            closing.callback(response.close)
            location = response.headers.get("Location")
            if response.status in REDIRECTS and location is not None:
                return 0, location
            return _read(response, path, target, rules, deadline), None
        except (HTTPError, HTTPException, OSError, ValueError):
            late = f"it did not arrive within {rules.seconds:g} seconds."
            reason = late if deadline.is_over else "its server broke off, or speaks no HTTP."
            raise _failed(path, reason) from None


def _joined(remote: RemoteUrl, location: str) -> str:
    """Return where a redirect leads to; what cannot be read stays as it is, and is refused like any such URL."""
    try:
        return urljoin(remote.base, location)
    except ValueError:
        return location


def _asked(connection: Connection, remote: RemoteUrl) -> BaseHTTPResponse:
    connection.request(
        "GET",
        remote.target,
        headers={"Host": remote.host_header, "User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
        preload_content=False,
        decode_content=False,
    )
    return connection.getresponse()


def _addresses_of(remote: RemoteUrl, path: str, rules: FetchRules, deadline: _Deadline) -> list[str]:
    """Resolve once; every address must be public."""
    try:
        addresses = _resolving.submit(rules.resolve, remote.host, remote.port).result(deadline.left)
    except (OSError, UnicodeError, StillWaiting):
        addresses = []
    if not addresses:
        raise _failed(path, "its host name cannot be resolved.")
    if not remote.is_allowed and not all(is_public(address) for address in addresses):
        raise not_allowed(path)
    return addresses


def _connected(addresses: list[str], port: int, path: str, deadline: _Deadline) -> socket.socket:
    """Connect to the first of these addresses that answers."""
    for address in addresses[:MOST_ADDRESSES]:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), timeout=min(CONNECT_SECONDS, deadline.left))
    raise _failed(path, "its server cannot be reached.")


def _connection(remote: RemoteUrl, opened: socket.socket, rules: FetchRules) -> Connection:
    """Make an HTTP connection over the socket that is open already, so that nothing is resolved again."""
    if remote.scheme == "http":
        return _OverHttp(opened, remote)
    return _OverHttps(opened, remote, rules.tls)


class _OverHttp(HTTPConnection):
    def __init__(self, opened: socket.socket, remote: RemoteUrl) -> None:
        super().__init__(remote.host, remote.port)
        self._opened = opened

    def _new_conn(self) -> socket.socket:
        return self._opened


class _OverHttps(HTTPSConnection):
    def __init__(self, opened: socket.socket, remote: RemoteUrl, tls: ssl.SSLContext) -> None:
        super().__init__(remote.host, remote.port, ssl_context=tls)
        self._opened = opened

    def _new_conn(self) -> socket.socket:
        return self._opened


def _read(response: BaseHTTPResponse, path: str, target: IO[bytes], rules: FetchRules, deadline: _Deadline) -> int:
    if response.status != 200:
        raise _failed(path, f"its server answered with status {response.status}.")
    if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise _failed(path, "its server sent it compressed, although it was asked not to.")
    declared = response.headers.get("Content-Length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:18]) > rules.most_bytes:
        raise _too_large(path, rules)
    size = 0
    while piece := response.read(READ_BYTES):
        if deadline.is_over:
            raise TimeoutError
        if not size and len(piece) >= START_BYTES and not begins_as_image(piece):
            raise image_refusal(path, PARSE_ERROR, f"its server sent something else than {FORMATS}.")
        size += len(piece)
        if size > rules.most_bytes:
            raise _too_large(path, rules)
        target.write(piece)
    if deadline.is_over:
        raise TimeoutError
    if not size:
        raise _failed(path, "its server sent nothing.")
    return size


def _too_large(path: str, rules: FetchRules) -> ContractRefusal:
    return image_refusal(path, TOO_LARGE, f"it has more than {shown_bytes(rules.most_bytes)}.")


def _failed(path: str, reason: str) -> ContractRefusal:
    return image_refusal(path, FETCH_FAILED, reason)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
