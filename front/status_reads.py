"""Reads of statuses: each by itself while few are under way, many in one call when they come in a burst (details D12).

Thousands of waits poll now and then, and a reconnect rings them all. Above a few reads at
once, the next ones gather while a batch is under way and go out together in the next.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from front.background import Background
from front.native import Answer, Caller, NativeApi, Unreachable

READS_AT_ONCE = 8
"""Reads that go out by themselves at a time."""

LARGEST_BATCH = 200


@dataclass(frozen=True, slots=True)
class Look:
    """What a read found: a status, or that it is the one seen before, or that the horde has no such request."""

    status: Mapping[str, Any] | None = None
    unknown: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether the status seen before still holds."""
        return self.status is None and not self.unknown


@dataclass(slots=True)
class _Waiting:
    version: str | None
    found: asyncio.Future[Look]


class StatusReads:
    """All reads of a process."""

    def __init__(self, native: NativeApi, background: Background) -> None:
        self._native = native
        self._background = background
        self._alone = 0
        self._waiting: dict[str, _Waiting] = {}
        self._batching = False

    async def read(self, request_id: str, caller: Caller, version: str | None) -> Look:
        """Read a status; `version` is that of the status seen before.

        Raises Unreachable when there is no answer that can be used.
        """
        if self._alone < READS_AT_ONCE or not self._native.has_passkey:
            self._alone += 1
            try:
                return _look(await self._native.status(request_id, caller))
            finally:
                self._alone -= 1
        waiting = _Waiting(version, asyncio.get_running_loop().create_future())
        self._waiting[request_id] = waiting
        if not self._batching:
            self._batching = True
            self._background.spawn(self._run(), "statuses")
        return await waiting.found

    async def _run(self) -> None:
        try:
            while self._waiting:
                names = list(self._waiting)[:LARGEST_BATCH]
                await self._batch({name: self._waiting.pop(name) for name in names})
        finally:
            self._batching = False

    async def _batch(self, batch: Mapping[str, _Waiting]) -> None:
        try:
            answer = await self._native.statuses({name: waiting.version for name, waiting in batch.items()})
            statuses = _statuses(answer)
        except Unreachable as error:
            for waiting in batch.values():
                if not waiting.found.done():
                    waiting.found.set_exception(Unreachable(sent=error.sent))
            return
        for name, waiting in batch.items():
            if not waiting.found.done():
                status = statuses.get(name, {})
                waiting.found.set_result(Look(unknown=True) if status is None else Look(status or None))


def _look(answer: Answer) -> Look:
    if answer.status == 200:
        return Look(answer.json() or {})
    if answer.refusal() is None or answer.status == 429 or answer.status >= 500:
        raise Unreachable(sent=True)
    return Look(unknown=True)


def _statuses(answer: Answer) -> Mapping[str, Any]:
    body = answer.json() if answer.status == 200 else None
    statuses = None if body is None else body.get("statuses")
    if not isinstance(statuses, dict):
        raise Unreachable(sent=True)
    return statuses
