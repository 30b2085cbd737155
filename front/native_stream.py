"""`GET /v2/generate/chat/stream/{id}`: a request's progress as server-sent events, for clients of the native API.

Every event carries its place in the retained stream as its id, so a client that lost the
line goes on from there with `Last-Event-ID`. Who may read a status may read this (details D18).
"""

import re
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from quart import Blueprint, Response, request

from app.domain.progress_entries import ProgressEntry
from app.domain.redis_keys import chat_channel
from app.domain.states import ENDED_REQUESTS
from front import errors, sse
from front.context import Front
from front.doorbell import Bell
from front.errors import FrontError
from front.exchange import Exchange, current_exchange
from front.jitter import around_one
from front.lifecycle import QUEUED_PAYLOAD
from front.native import ANONYMOUS_KEY, Answer, Caller, Unreachable
from front.progress_reader import BEGINNING, Entry, Follower
from front.responses import JSON, native_problem
from front.wire import encode

PATHS = ("/api/v2/generate/chat/stream/<request_id>", "/v2/generate/chat/stream/<request_id>")

WAITING_ENTRIES = 200
"""Entries kept for a client that is slow to take them; the rest waits in Redis."""

LAST_READ_SECONDS = 1.0
"""How long the end of a request waits for what was posted before it."""

DONE_ID = "done"
"""The id of the last event. A client that comes back with it is told that there is nothing more."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_PLACE = re.compile(r"\d{1,20}-\d{1,20}")
_KEY = re.compile(r"[!-~]{1,255}")


def native_stream_blueprint(front: Front) -> Blueprint:
    """The route, under both prefixes."""
    blueprint = Blueprint("native_stream", __name__)

    async def stream(request_id: str) -> Response:
        try:
            return await _opened(front, current_exchange(), request_id)
        except FrontError as error:
            return native_problem(error.problem)
        except Unreachable:
            return native_problem(errors.unreachable())

    for number, path in enumerate(PATHS):
        blueprint.add_url_rule(path, f"stream_{number}", stream, methods=["GET"], provide_automatic_options=False)
    return blueprint


async def _opened(front: Front, exchange: Exchange, request_id: str) -> Response:
    """The open stream; or the native API's refusal of who asks.

    Raises FrontError and Unreachable.
    """
    place = _place()
    if place == DONE_ID:
        return Response(b"", status=204)
    if not _REQUEST_ID.fullmatch(request_id):
        raise FrontError(errors.unknown_request())
    api_key = request.headers.get("apikey") or ANONYMOUS_KEY
    if not _KEY.fullmatch(api_key):
        raise FrontError(errors.invalid_key())
    release = front.admission.hold()
    if release is None:
        raise FrontError(errors.at_capacity("on this server"))
    exchange.on_close(release)
    caller = Caller(api_key, exchange.address, exchange.request_id)
    listening = _Listening(front, request_id, caller, place)
    exchange.on_close(listening.close)
    answer = await listening.open()
    if answer.status != 200:
        return Response(answer.body, status=answer.status, content_type=answer.headers.get("Content-Type", JSON))
    response = Response(listening.events(), headers=dict(sse.HEADERS))
    # Each send has its own limit, and the request an end of its own.
    response.timeout = None
    return response


def _place() -> str:
    """Where the client was.

    Raises FrontError (400) for an id that no event of ours has.
    """
    place = request.headers.get("Last-Event-ID") or BEGINNING
    if place != DONE_ID and not _PLACE.fullmatch(place):
        raise FrontError(errors.bad_event_id())
    return place


class _Listening:
    """One client that listens to one request."""

    def __init__(self, front: Front, request_id: str, caller: Caller, place: str) -> None:
        self._front = front
        self._request_id = request_id
        self._caller = caller
        self._place = place
        self._status: Mapping[str, Any] = {}
        self._entries: deque[Entry] = deque()
        self._poll_at = time.monotonic() + front.settings.fallback_poll_seconds * around_one()
        self._bell: Bell | None = None
        self._follower: Follower | None = None
        self._leave_drain = front.drain.at_start(self._nudge)

    async def open(self) -> Answer:
        """Listen, then read the status with the client's own rights.

        Raises Unreachable.
        """
        self._bell = await self._front.doorbell.watch(chat_channel(self._request_id), QUEUED_PAYLOAD)
        answer = await self._front.native.status_as(self._request_id, self._caller)
        self._status = answer.json() or {}
        return answer

    def close(self) -> None:
        """Listen no more."""
        self._leave_drain()
        if self._follower is not None:
            self._front.progress.leave(self._follower)
        if self._bell is not None:
            self._front.doorbell.forget(self._bell)

    async def events(self) -> AsyncIterator[bytes]:
        """Every entry as it comes, comments in silence, and the status once the request has ended."""
        self._follower = self._front.progress.follow(self._request_id, self._take, self._place)
        said = time.monotonic()
        try:
            while not self._has_ended:
                event = await self._next_event(said + self._front.settings.keep_alive_seconds)
                if event:
                    yield event
                    said = time.monotonic()
            await self._read_the_rest()
            while self._entries:
                yield self._taken()
                await self._read_the_rest()
            yield _event("done", encode(dict(self._status)), DONE_ID)
        except FrontError as error:
            yield _event("error", error.problem.native_body())

    async def _next_event(self, silent_until: float) -> bytes:
        """Wait for news until then, when a comment is due. Empty when the news was only the status.

        Raises FrontError.
        """
        if self._entries:
            return self._taken()
        if self._front.drain.started:
            raise FrontError(errors.draining())
        rang = self._bell is not None and await self._bell.wait(min(silent_until, self._poll_at) - time.monotonic())
        now = time.monotonic()
        if rang or now >= self._poll_at:
            self._poll_at = now + self._front.settings.fallback_poll_seconds * around_one()
            await self._read_status()
        return sse.KEEP_ALIVE if now >= silent_until and not self._entries else b""

    @property
    def _has_ended(self) -> bool:
        return self._status.get("state") in ENDED_REQUESTS

    def _take(self, entries: Sequence[Entry]) -> bool:
        self._entries.extend(entries)
        self._nudge()
        return len(self._entries) < WAITING_ENTRIES

    def _taken(self) -> bytes:
        """Everything that waits, as events."""
        events = b"".join(_entry_event(place, entry) for place, entry in self._entries)
        was_full = len(self._entries) >= WAITING_ENTRIES
        self._entries.clear()
        if was_full and self._follower is not None:
            self._front.progress.ask(self._follower)
        return events

    def _nudge(self) -> None:
        if self._bell is not None:
            self._bell.nudge()

    async def _read_status(self) -> None:
        """Read the status, if it can be read now.

        Raises FrontError when the horde has erased the request.
        """
        try:
            look = await self._front.surroundings.statuses.read(self._request_id, self._caller, None)
        except Unreachable:
            return
        if look.unknown:
            raise FrontError(errors.unknown_request())
        if look.status is not None:
            self._status = look.status

    async def _read_the_rest(self) -> None:
        """Wait a moment for one more read of the stream."""
        follower, bell = self._follower, self._bell
        if follower is None or bell is None:
            return
        self._front.progress.ask(follower)
        seen, until = follower.reads, time.monotonic() + LAST_READ_SECONDS
        while follower.reads == seen and (left := until - time.monotonic()) > 0:
            await bell.wait(left)


def _entry_event(place: str, entry: ProgressEntry) -> bytes:
    if entry.ended:
        return _event("ended", encode({"generation": entry.generation_id}), place)
    data = {
        "generation": entry.generation_id,
        "seq": entry.seq,
        "delta": entry.delta,
        "reasoning_delta": entry.reasoning_delta,
    }
    if entry.model is not None:
        data["model"] = entry.model
    return _event("delta", encode(data), place)


def _event(name: str, data: bytes, place: str | None = None) -> bytes:
    """One named event; unlike OpenAI's, events here may carry an id."""
    identity = b"" if place is None else b"id: " + place.encode() + b"\n"
    return b"event: " + name.encode() + b"\n" + identity + sse.frame(data)
