"""Reads of statuses: each by itself while few are under way, many in one call when they come in a burst (details D12).

A reconnect rings thousands of waits. Above a few reads at once, the next ones gather while a
batch is under way and go out together in the next. The fallback polls of all waits are batches
always, and wake no task: only what a poll finds changed does.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from front.background import Background
from front.native import Answer, Caller, NativeApi, Unreachable
from front.wheel import Wheel

READS_AT_ONCE = 8
"""Reads that go out by themselves at a time."""

LARGEST_BATCH = 200

POLL_GRAIN_SECONDS = 0.25
"""Polls that are due within this time of each other go out together."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a read found: a status, or that it is the one seen before, or that the horde has no such request."""

    status: Mapping[str, Any] | None = None
    unknown: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether the status seen before still holds."""
        return self.status is None and not self.unknown


_SAME = Look()
_GONE = Look(unknown=True)

Found = Callable[[Look | Unreachable], None]
"""Takes what a read found, or that it found nothing out."""


@dataclass(slots=True)
class _Waiting:
    version: str | None
    tell: list[Found] = field(default_factory=list)


class StatusReads:
    """All reads of a process."""

    def __init__(self, native: NativeApi, background: Background) -> None:
        self._native = native
        self._background = background
        self._alone = 0
        self._waiting: dict[str, _Waiting] = {}
        self._batching = False
        self.polls = Wheel(POLL_GRAIN_SECONDS)

    @property
    def can_batch(self) -> bool:
        """Whether the native API lets this front read many statuses in one call."""
        return self._native.has_passkey

    async def read(self, request_id: str, caller: Caller, version: str | None) -> Look:
        """Read a status; `version` is that of the status seen before.

        Raises Unreachable when there is no answer that can be used.
        """
        if not self.can_batch or (self._alone < READS_AT_ONCE and not self._batching):
            self._alone += 1
            try:
                return _look(await self._native.status(request_id, caller))
            finally:
                self._alone -= 1
        future: asyncio.Future[Look] = asyncio.get_running_loop().create_future()

        def tell(found: Look | Unreachable) -> None:
            if future.done():
                return
            if isinstance(found, Look):
                future.set_result(found)
            else:
                future.set_exception(Unreachable(sent=found.sent))

        self.check(request_id, version, tell)
        return await future

    def check(self, request_id: str, version: str | None, tell: Found) -> None:
        """Read a status in the next batch, and call `tell` with what was found."""
        waiting = self._waiting.setdefault(request_id, _Waiting(version))
        if waiting.version != version:
            waiting.version = None
        waiting.tell.append(tell)
        if not self._batching:
            self._batching = True
            self._background.spawn(self._run(), "statuses")

    async def _run(self) -> None:
        try:
            while self._waiting:
                names = list(self._waiting)[:LARGEST_BATCH]
                await self._batch({name: self._waiting.pop(name) for name in names})
        finally:
            self._batching = False

    async def _batch(self, batch: Mapping[str, _Waiting]) -> None:
        found: Mapping[str, Any] | Unreachable
        try:
            found = _statuses(await self._native.statuses({name: waiting.version for name, waiting in batch.items()}))
        except Unreachable as error:
            found = error
        for name, waiting in batch.items():
            look = found if isinstance(found, Unreachable) else _look_in(found, name)
            for tell in waiting.tell:
                tell(look)


def _look_in(statuses: Mapping[str, Any], request_id: str) -> Look:
    status = statuses.get(request_id, {})
    return _GONE if status is None else Look(status) if status else _SAME


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
