"""The horde's side of the wire: pop, progress and submit (native API N3), and reads for the commands."""

from dataclasses import dataclass
from typing import Any

import aiohttp

from . import BRIDGE_AGENT
from .chat import Json

ANSWER_SECONDS = 20.0
"""Time for an answer, beyond the time that a pop may be held."""

LONGEST_RETRY_AFTER = 60.0
PASSING = frozenset({408, 425, 429})
"""Client-error statuses that a repeat may cure."""


class HordeUnavailable(Exception):
    """No usable answer; the same call may be repeated. `retry_after` is the horde's own wish, in seconds."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


class HordeRefusal(Exception):
    """A final no: status, return code and the horde's message; `body` is the whole answer."""

    def __init__(self, status: int, rc: str | None, message: str, body: Json | None = None) -> None:
        super().__init__(f"{status} {rc}: {message}")
        self.status = status
        self.rc = rc
        self.message = message
        self.body = body or {}


@dataclass(frozen=True)
class Receipt:
    """What became of a submit: 200 with the reward, 202 while its verdict is still to come, or a refusal."""

    status: int
    reward: float | None
    rc: str | None = None


@dataclass(frozen=True)
class ProgressAnswer:
    """The answer to a progress post."""

    status: int
    cancelled: bool = False
    next_seq: int | None = None


class HordeClient:
    """HTTP calls to one horde."""

    def __init__(self, session: aiohttp.ClientSession, url: str, api_key: str) -> None:
        self._session = session
        self._url = f"{url}/api/v2"
        self._headers = {"apikey": api_key, "Client-Agent": BRIDGE_AGENT}

    async def pop(self, body: Json) -> Json:
        """The answer to a pop, whose `id` is null when there is no job.

        Raises HordeUnavailable or HordeRefusal.
        """
        _, answer = await self._call("POST", "/generate/text/pop", body, ANSWER_SECONDS + body["wait"])
        return answer

    async def submit(self, body: Json) -> Receipt:
        """What became of a submit. Raises HordeUnavailable or HordeRefusal."""
        status, answer = await self._call("POST", "/generate/text/submit", body)
        return Receipt(status, answer.get("reward"))

    async def progress(self, body: Json) -> ProgressAnswer:
        """The answer to a progress post or a heartbeat. Raises HordeUnavailable."""
        try:
            status, answer = await self._call("POST", "/generate/text/progress", body)
        except HordeRefusal as refusal:
            status, answer = refusal.status, refusal.body
        next_seq = answer.get("next_seq")
        known = isinstance(next_seq, int) and next_seq >= 0
        return ProgressAnswer(status, answer.get("cancelled") is True, next_seq if known else None)

    async def restore_lease(self, job_id: str) -> bool:
        """Asks for a lease that the horde has lost; whether it is there again. Raises HordeUnavailable."""
        try:
            await self._call("POST", "/generate/text/lease", {"id": job_id})
        except HordeRefusal:
            return False
        return True

    async def account(self) -> Json:
        """The account of the key. Raises HordeUnavailable or HordeRefusal."""
        return (await self._call("GET", "/find_user"))[1]

    async def worker(self, worker_id: str) -> Json:
        """A worker as the horde shows it. Raises HordeUnavailable or HordeRefusal."""
        return (await self._call("GET", f"/workers/{worker_id}"))[1]

    async def ask(self, body: Json) -> Json:
        """Submits a chat request of one's own. Raises HordeUnavailable or HordeRefusal."""
        return (await self._call("POST", "/generate/chat/async", body))[1]

    async def status(self, request_id: str) -> Json:
        """The status of a chat request. Raises HordeUnavailable or HordeRefusal."""
        return (await self._call("GET", f"/generate/chat/status/{request_id}"))[1]

    async def cancel(self, request_id: str) -> None:
        """Cancels a chat request. Raises HordeUnavailable or HordeRefusal."""
        await self._call("DELETE", f"/generate/chat/status/{request_id}")

    async def _call(
        self, method: str, path: str, body: Json | None = None, seconds: float = ANSWER_SECONDS
    ) -> tuple[int, Json]:
        try:
            async with self._session.request(
                method,
                self._url + path,
                json=body,
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
            ) as response:
                return response.status, await _answer(response)
        except TimeoutError:
            raise HordeUnavailable("no answer in time") from None
        except aiohttp.ClientError as error:
            raise HordeUnavailable(type(error).__name__) from None


async def _answer(response: aiohttp.ClientResponse) -> Json:
    body = await _json_object(response)
    if response.status in {200, 202} and body is not None:
        return body
    if response.status >= 500 or response.status in PASSING or response.status < 300:
        raise HordeUnavailable(f"status {response.status}", _retry_after(response))
    if response.status < 400:
        target = response.headers.get("Location", "elsewhere")
        raise HordeRefusal(response.status, None, f"HORDE_URL redirects to {target}; set it to the final address")
    body = body or {}
    raise HordeRefusal(response.status, body.get("rc"), str(body.get("message") or "no message"), body)


async def _json_object(response: aiohttp.ClientResponse) -> Json | None:
    try:
        body: Any = await response.json(content_type=None)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    text = response.headers.get("Retry-After", "")
    return min(float(text), LONGEST_RETRY_AFTER) if text.isascii() and text.isdigit() else None
