"""Cancels of requests whose clients left, or that came to nothing: few each by itself, many in one call.

When a proxy or a network dies, thousands of clients vanish at once, and every request of theirs
would still be given to a worker. Above a few cancels at a time, those that can go out together.
"""

import asyncio
import logging
from collections.abc import Mapping

from config.fault_points import FaultPoint, reach
from front.background import Background
from front.native import Answer, Caller, NativeApi, Unreachable

log = logging.getLogger(__name__)

PAUSES_SECONDS = (0.0, 0.5, 2.0, 5.0)
"""Before each attempt at a cancel. The native API expires what none of them reached."""

AT_ONCE = 8
"""Cancels that go out by themselves at a time."""

LARGEST_BATCH = 200


class Cancels:
    """All cancels of a process."""

    def __init__(self, native: NativeApi, background: Background) -> None:
        self._native = native
        self._background = background
        self._alone = 0
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._batching = False

    def begin(self, request_id: str, caller: Caller, relayed: Mapping[str, str] | None, *, doubtful: bool) -> None:
        """Cancel a request, with a few attempts, in the background.

        `relayed`: the text that its client got, on which it is settled if Redis lost the posts (details D15).
        `doubtful`: its submit may still be on its way, so an unknown id is asked for again.
        """
        self._background.spawn(self._cancel(request_id, caller, relayed, doubtful=doubtful), "cancel")

    async def _cancel(
        self, request_id: str, caller: Caller, relayed: Mapping[str, str] | None, *, doubtful: bool
    ) -> None:
        for pause in PAUSES_SECONDS:
            await asyncio.sleep(pause)
            if self._alone >= AT_ONCE and self._native.has_passkey and await self._together(request_id):
                reach(FaultPoint.FRONT_CANCELLED)
                return
            try:
                answer = await self._by_itself(request_id, caller, relayed)
            except Unreachable:
                continue
            if answer.status in {400, 413}:
                # Better cancelled without what was relayed than not at all.
                relayed = None
                continue
            reach(FaultPoint.FRONT_CANCELLED)
            if answer.status == 200 or (answer.status == 404 and not doubtful):
                return
        log.warning("request %s could not be cancelled; it will expire", request_id)

    async def _by_itself(self, request_id: str, caller: Caller, relayed: Mapping[str, str] | None) -> Answer:
        self._alone += 1
        try:
            return await self._native.cancel(request_id, caller, relayed)
        finally:
            self._alone -= 1

    async def _together(self, request_id: str) -> bool:
        """Cancel it in the next batch. False when it has to be cancelled by itself: a worker has begun it."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = done
        if not self._batching:
            self._batching = True
            self._background.spawn(self._run(), "cancels")
        return await done

    async def _run(self) -> None:
        try:
            while self._waiting:
                names = list(self._waiting)[:LARGEST_BATCH]
                await self._batch({name: self._waiting.pop(name) for name in names})
        finally:
            self._batching = False

    async def _batch(self, batch: Mapping[str, "asyncio.Future[bool]"]) -> None:
        try:
            cancelled = _cancelled(await self._native.cancel_unstarted(list(batch)))
        except Unreachable:
            cancelled = frozenset()
        for request_id, done in batch.items():
            if not done.done():
                done.set_result(request_id in cancelled)


def _cancelled(answer: Answer) -> frozenset[str]:
    body = answer.json() if answer.status == 200 else None
    ids = [] if body is None else body.get("cancelled")
    return frozenset(each for each in ids if isinstance(each, str)) if isinstance(ids, list) else frozenset()
