"""Waiting that ends when the worker is told to stop: signals, back-off, interruptible work."""

import asyncio
import random
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
DICE = random.SystemRandom()

POP_GRACE_SECONDS = 1.0
"""An open pop gets this long after SIGTERM: it may be bringing a job, which must not be lost."""

SUBMIT_GRACE_SECONDS = 5.0
"""Replies and faults get this long beyond the jobs' grace to reach the horde."""


class Interrupted(Exception):
    """The work was given up because the worker stops."""


class Backoff:
    """Delays in seconds that double from `first` to `most`, each drawn from the upper half of its step.

    The jitter keeps many workers from returning together after an outage of the horde.
    """

    def __init__(self, first: float = 0.5, most: float = 10.0) -> None:
        self._first = first
        self._most = most
        self._step = first

    def next(self) -> float:
        """The next delay."""
        delay = DICE.uniform(self._step / 2, self._step)
        self._step = min(self._step * 2, self._most)
        return delay

    async def wait(self) -> None:
        """Waits for the next delay."""
        await asyncio.sleep(self.next())

    def reset(self) -> None:
        """Begins again at the first delay, after something worked."""
        self._step = self._first


async def unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which is cancelled when the event comes first.

    Raises Interrupted in that case.
    """
    task = asyncio.ensure_future(work)
    waiter = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    if task.cancelled():
        raise Interrupted
    return task.result()


async def pause(event: asyncio.Event, seconds: float) -> None:
    """Waits so many seconds, or until the event."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def on_stop_signal(act: Callable[[], None]) -> None:
    """Has SIGTERM and SIGINT (Ctrl-C) do this in the running event loop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))


class Shutdown:
    """The stages of stopping, each an event: no new pops, pops over, jobs over, submits over.

    The first request starts the clock; a second one ends the jobs' grace at once.
    """

    def __init__(self, grace_seconds: float) -> None:
        self._grace = grace_seconds
        self.requested = asyncio.Event()
        self.pops_over = asyncio.Event()
        self.jobs_over = asyncio.Event()
        self.submits_over = asyncio.Event()

    def request(self) -> None:
        """Starts the stop, or hurries one that has started."""
        loop = asyncio.get_running_loop()
        grace = 0.0 if self.requested.is_set() else self._grace
        self.requested.set()
        loop.call_later(min(POP_GRACE_SECONDS, grace), self.pops_over.set)
        loop.call_later(grace, self.jobs_over.set)
        loop.call_later(grace + SUBMIT_GRACE_SECONDS, self.submits_over.set)
