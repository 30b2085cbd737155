"""The native API as the front calls it (details D1, D9, D18).

One pooled HTTP client a process. A root is one base URL; roots are taken in turn, those
that gave no answer lately last, and a call that never reached one goes to the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from front.roots import Roots
from front.wire import decode_object, encode

CONNECT_SECONDS = 2.0
CALL_SECONDS = 10.0
LARGE_BODY_BYTES = 2**20
POOL_CONNECTIONS = 256
"""Connections to all roots together; calls above that wait for one."""

NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Errors that say that nothing of a call reached its root."""

ANONYMOUS_KEY = "0000000000"

_CHAT = "/api/v2/generate/chat"


class Unreachable(Exception):
    """A call got no answer. `sent` says that the root may have received it."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__("the answer was lost" if sent else "no connection")
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf the front calls."""

    api_key: str = field(repr=False)
    address: str
    request_id: str

    @property
    def is_anonymous(self) -> bool:
        """Whether this is the key that everybody may use."""
        return self.api_key == ANONYMOUS_KEY


@dataclass(frozen=True, slots=True)
class Answer:
    """What a root answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def json(self) -> dict[str, Any] | None:
        """The JSON object in the body, or None when it holds none."""
        try:
            return decode_object(self.body)
        except ValueError:
            return None

    def refusal(self) -> dict[str, Any] | None:
        """The body of a refusal of the native API's own, known by its `rc`; None for anything else."""
        if self.status < 400:
            return None
        body = self.json()
        return body if body is not None and isinstance(body.get("rc"), str) else None


class NativeApi:
    """Calls to the roots."""

    def __init__(self, roots: tuple[str, ...], passkey: str | None) -> None:
        self.roots = Roots(roots)
        self._vouching = {} if passkey is None else {"Proxy-Authorization": passkey}
        self._own = self._vouching if passkey is None else {**self._vouching, "Front-Authorization": passkey}
        self._opened: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Make the pool; call it inside the running loop."""
        self._opened = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=POOL_CONNECTIONS, keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the pool."""
        if self._opened is not None:
            await self._opened.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """The pool."""
        if self._opened is None:
            raise RuntimeError("the pool is not open")
        return self._opened

    def vouch(self, headers: CIMultiDict[str], address: str) -> None:
        """Say in `headers` for which address the front forwards (details D18)."""
        headers.update(self._vouched(address))

    def _vouched(self, address: str) -> dict[str, str]:
        """Headers that vouch for an address; without a passkey the front cannot, and does not try."""
        return {**self._vouching, "Proxied-For": address} if self._vouching else {}

    async def submit(self, root: str, body: bytes, headers: Mapping[str, str], seconds: float) -> Answer:
        """Submit a chat request to one root.

        Raises Unreachable.
        """
        return await self._call("POST", root, f"{_CHAT}/async", headers, body, seconds)

    async def submit_text(
        self, root: str, path: str, body: bytes, headers: Mapping[str, str], seconds: float
    ) -> Answer:
        """Submit a text request to one root, under the path that its client called.

        Raises Unreachable.
        """
        return await self._call("POST", root, path, headers, body, seconds)

    def headers_for(self, caller: Caller) -> dict[str, str]:
        """Headers of a call on behalf of a client."""
        return {
            **self._own,
            **self._vouched(caller.address),
            "apikey": caller.api_key,
            "X-Request-Id": caller.request_id,
        }

    async def status(self, request_id: str, caller: Caller) -> Answer:
        """Read a request's status.

        Raises Unreachable.
        """
        return await self._anywhere("GET", f"{_CHAT}/status/{request_id}", self.headers_for(caller))

    async def status_as(self, request_id: str, caller: Caller) -> Answer:
        """Read a request's status with no other right than the caller's own.

        Raises Unreachable.
        """
        headers = {**self._vouched(caller.address), "apikey": caller.api_key, "X-Request-Id": caller.request_id}
        return await self._anywhere("GET", f"{_CHAT}/status/{request_id}", headers)

    @property
    def has_passkey(self) -> bool:
        """Whether the native API knows this front as one of its own."""
        return bool(self._own)

    async def statuses(self, seen: Mapping[str, str | None]) -> Answer:
        """Read those of many statuses that changed since their version was seen.

        Raises Unreachable.
        """
        headers = {**self._own, "Content-Type": "application/json"}
        return await self._anywhere("POST", "/internal/statuses", headers, encode({"seen": dict(seen)}))

    async def cancel(self, request_id: str, caller: Caller, relayed: Mapping[str, str] | None) -> Answer:
        """Cancel a request; `relayed` is the text that the client got of it.

        Raises Unreachable.
        """
        path, headers = f"{_CHAT}/status/{request_id}", self.headers_for(caller)
        if relayed is None:
            return await self._anywhere("DELETE", path, headers)
        headers["Content-Type"] = "application/json"
        return await self._anywhere("DELETE", path, headers, encode({"relayed": dict(relayed)}))

    async def cancel_unstarted(self, request_ids: Sequence[str]) -> Answer:
        """Cancel those of many requests that no worker has begun.

        Raises Unreachable.
        """
        headers = {**self._own, "Content-Type": "application/json"}
        return await self._anywhere("POST", "/internal/cancels", headers, encode({"ids": list(request_ids)}))

    async def models(self) -> Answer:
        """The online chat models.

        Raises Unreachable.
        """
        return await self._anywhere("GET", f"{_CHAT}/models", self._own)

    async def status_events(self) -> Answer:
        """One look at the horde, as an event of the status page.

        Raises Unreachable.
        """
        return await self._anywhere("GET", "/status/events", self._own)

    async def pop(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Pop a job with a worker's own headers.

        A pop whose answer was lost is not repeated: it may have taken a job.
        Raises Unreachable.
        """
        return await self._anywhere("POST", path, headers, body)

    async def release(self, generation_id: str) -> Answer:
        """Give a job back whose worker has gone (details D16).

        Raises Unreachable.
        """
        headers = {**self._own, "Content-Type": "application/json"}
        return await self._anywhere("POST", "/internal/release", headers, encode({"id": generation_id}))

    async def alive(self, seconds: float) -> bool:
        """Whether any root says that it is alive."""
        for root in self.roots.in_turn():
            try:
                answer = await self._call("GET", root, "/healthz", {}, None, seconds)
            except Unreachable:
                continue
            if answer.status == 200:
                return True
        return False

    async def _anywhere(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        failed = Unreachable(sent=False)
        for root in self.roots.in_turn():
            try:
                return await self._call(method, root, path, headers, body, CALL_SECONDS)
            except Unreachable as error:
                if error.sent and method == "POST":
                    raise
                failed = error
        raise failed

    async def _call(
        self, method: str, root: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> Answer:
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=min(CONNECT_SECONDS, seconds))
        try:
            async with self.session.request(
                method,
                URL(f"{root}{path}", encoded=True),
                data=_payload(body),
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                answer = Answer(response.status, response.headers, await response.read())
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            self.roots.failed(root)
            raise Unreachable(sent=not isinstance(error, NEVER_SENT)) from error
        self.roots.answered(root)
        return answer


def _payload(body: bytes | None) -> bytes | BytesIO | None:
    """The body as aiohttp wants it: a large one as a file, which it sends bit by bit, so that others get their turn."""
    return BytesIO(body) if body is not None and len(body) > LARGE_BODY_BYTES else body
