"""Bringing a request to the horde once, although answers get lost (details D9).

The identical bytes go out under one operation key, over the roots in turn, until a
root answers; the native API gives the first request back for a repeated key.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping
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
        """Key the submit: by the call's key where a proxy may bring the call to another front, at random elsewhere."""
        key = secrets.token_urlsafe(24) if repeat_key is None else f"repeat-{repeat_key}"
        object.__setattr__(self, "operation_key", key)

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
    give_up = time.monotonic() + WITHIN_SECONDS
    roots = native.roots.in_turn()
    calls, tries, doubtful = 0, 0, False
    while tries < TRIES and (left := give_up - time.monotonic()) > 0:
        root = roots[calls % len(roots)]
        calls += 1
        if calls > 1:
            metrics.submit_retried()
        try:
            answer = await native.submit(root, order.body, headers, min(TRY_SECONDS, left))
        except Unreachable as lost:
            tries += lost.sent
            doubtful = doubtful or lost.sent
        else:
            tries += 1
            accepted = _accepted(answer)
            if accepted is not None:
                return accepted
            if (refusal := answer.refusal()) is not None:
                problem = errors.from_native(answer.status, refusal, answer.headers.get("Retry-After"))
                raise NotAccepted(problem, refused=True, doubtful=doubtful)
            # Whoever answered this was not the horde, or not in its right mind.
            doubtful = doubtful or answer.status < 400 or answer.status >= 500
        if calls >= len(roots) and tries < TRIES:
            await asyncio.sleep(PAUSES_SECONDS[min(calls, len(PAUSES_SECONDS)) - 1] * around_one())
    raise NotAccepted(errors.unreachable(), refused=False, doubtful=doubtful)


def _accepted(answer: Answer) -> Accepted | None:
    if answer.status not in {200, 202}:
        return None
    body = answer.json()
    if body is None or not isinstance(body.get("id"), str) or not isinstance(body.get("status"), dict):
        return None
    return Accepted(body["id"], body["status"])
