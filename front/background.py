"""Work that outlives the exchange that caused it: cancels and releases."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Background:
    """Keeps tasks alive until they end, and lets the shutdown wait for them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Run `work`; a failure is logged, never raised."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def settle(self, seconds: float) -> None:
        """Wait for what runs and what is begun meanwhile, then cancel what is left."""
        until = time.monotonic() + seconds
        while self._tasks and (left := until - time.monotonic()) > 0:
            await asyncio.wait(tuple(self._tasks), timeout=left)
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=1.0)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed: %s", task.get_name(), exc_info=error)
