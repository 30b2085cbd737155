"""Bringing a request, chat or text, to the horde once, although answers get lost (details D9).

The identical bytes go out under one operation key, over the roots in turn, until a
root answers; the native API gives the first request back for a repeated key.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any
from uuid import uuid4

from front import errors
from front.errors import Problem
from front.jitter import around_one
from front.metrics import FrontMetrics
from front.native import Answer, Caller, NativeApi, Unreachable

TRIES = 3
"""How often a root may have received the request; a call that reached none is not counted."""

WITHIN_SECONDS = 10.0
TRY_SECONDS = 5.0

PAUSES_SECONDS = (0.3, 1.5, 2.0)
"""Before each further call, when there is no other root to go to; the last is used again and again."""


def operation_key(repeat_key: str | None) -> str:
    """Under what a call is submitted: its key where a proxy may bring it to another front, a random one elsewhere."""
    return secrets.token_urlsafe(24) if repeat_key is None else f"repeat-{repeat_key}"


@dataclass(frozen=True, slots=True)
class Order:
    """One client's request, ready to be submitted."""

    body: bytes = field(repr=False)
    caller: Caller
    deadline_seconds: int
    proposed_id: str = field(default_factory=lambda: str(uuid4()))
    repeat_key: InitVar[str | None] = None
    operation_key: str = field(init=False, repr=False)

    def __post_init__(self, repeat_key: str | None) -> None:
        object.__setattr__(self, "operation_key", operation_key(repeat_key))

    def headers(self) -> dict[str, str]:
        """What a submit carries beside the caller's headers."""
        return {
            "Content-Type": "application/json",
            "Operation-Key": self.operation_key,
            "Horde-Request-Id": self.proposed_id,
            "Horde-Deadline": str(self.deadline_seconds),
        }


@dataclass(frozen=True, slots=True)
class Accepted:
    """The horde has the request."""

    request_id: str
    status: Mapping[str, Any]


class NotAccepted(Exception):
    """No root accepted the request.

    `refused` says that one answered with a refusal; `doubtful` that an earlier try may
    have been accepted all the same.
    """

    def __init__(self, problem: Problem, *, refused: bool, doubtful: bool) -> None:
        super().__init__(problem.code)
        self.problem = problem
        self.refused = refused
        self.doubtful = doubtful


async def submit(native: NativeApi, order: Order, metrics: FrontMetrics) -> Accepted:
    """Submit, at most three times within ten seconds; a root that takes no connections is waited for as long.

    Raises NotAccepted.
    """
    headers = native.headers_for(order.caller) | order.headers()
    tries = _Tries(native, metrics)
    async for root, seconds in tries.roots():
        try:
            answer = await native.submit(root, order.body, headers, seconds)
        except Unreachable as lost:
            tries.ended(reached=lost.sent, doubtful=lost.sent)
            continue
        accepted = _accepted(answer)
        if accepted is not None:
            return accepted
        if (refusal := answer.refusal()) is not None:
            problem = errors.from_native(answer.status, refusal, answer.headers.get("Retry-After"))
            raise NotAccepted(problem, refused=True, doubtful=tries.doubtful)
        # Whoever answered this was not the horde, or not in its right mind.
        tries.ended(reached=True, doubtful=answer.status < 400 or answer.status >= 500)
    raise NotAccepted(errors.unreachable(), refused=False, doubtful=tries.doubtful)


async def submit_text(
    native: NativeApi, path: str, body: bytes, headers: Mapping[str, str], metrics: FrontMetrics
) -> Answer:
    """Submit a text request with a client's own headers and an operation key; a lost answer is asked for again.

    Raises Unreachable when no root answers.
    """
    tries = _Tries(native, metrics)
    async for root, seconds in tries.roots():
        try:
            answer = await native.submit_text(root, path, body, headers, seconds)
        except Unreachable as lost:
            tries.ended(reached=lost.sent, doubtful=lost.sent)
            continue
        if answer.status < 500 or answer.refusal() is not None:
            return answer
        tries.ended(reached=True, doubtful=True)
    raise Unreachable(sent=tries.doubtful)


class _Tries:
    """Which root a submit goes to next: at most three that may have received it, within ten seconds."""

    def __init__(self, native: NativeApi, metrics: FrontMetrics) -> None:
        self.doubtful = False
        self._roots = native.roots.in_turn()
        self._metrics = metrics
        self._reached = 0

    async def roots(self) -> AsyncIterator[tuple[str, float]]:
        """Each root with the seconds that it gets; when there is no other root to go to, after a pause."""
        give_up = time.monotonic() + WITHIN_SECONDS
        calls = 0
        while self._reached < TRIES and (left := give_up - time.monotonic()) > 0:
            if calls:
                self._metrics.submit_retried()
            yield self._roots[calls % len(self._roots)], min(TRY_SECONDS, left)
            calls += 1
            if calls >= len(self._roots) and self._reached < TRIES:
                await asyncio.sleep(PAUSES_SECONDS[min(calls, len(PAUSES_SECONDS)) - 1] * around_one())

    def ended(self, *, reached: bool, doubtful: bool) -> None:
        """A try came to nothing. Whether it reached its root, and whether the request may have been accepted."""
        self._reached += reached
        self.doubtful = self.doubtful or doubtful


def _accepted(answer: Answer) -> Accepted | None:
    if answer.status not in {200, 202}:
        return None
    body = answer.json()
    if body is None or not isinstance(body.get("id"), str) or not isinstance(body.get("status"), dict):
        return None
    return Accepted(body["id"], body["status"])
