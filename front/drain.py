"""Stopping without losing anybody (front F6, reliability B1-B3).

The server starts the drain; the gate then lets nobody new in, and whoever waits
for something is interrupted when the time for finishing is over.
"""

import asyncio
from collections.abc import Callable


class Drain:
    """Counts open exchanges and tells those that wait when they must end."""

    def __init__(self) -> None:
        self.started = False
        self.ended = False
        self._open = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._on_start: set[Callable[[], None]] = set()
        self._on_end: set[Callable[[], None]] = set()

    def enter(self) -> None:
        """Count one more open exchange."""
        self._open += 1
        self._idle.clear()

    def leave(self) -> None:
        """Count one fewer."""
        self._open -= 1
        if self._open == 0:
            self._idle.set()

    def at_start(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the drain starts: for waits that may end at once. Returns the way to take it back."""
        self._on_start.add(callback)
        return lambda: self._on_start.discard(callback)

    def at_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the time for finishing is over. Returns the way to take it back."""
        self._on_end.add(callback)
        return lambda: self._on_end.discard(callback)

    def start(self) -> None:
        """Let nobody new in."""
        self.started = True
        for callback in tuple(self._on_start):
            callback()

    def end(self) -> None:
        """Interrupt whoever still waits."""
        self.ended = True
        for callback in tuple(self._on_end):
            callback()

    async def wait_idle(self, seconds: float) -> bool:
        """Whether every exchange ended within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
