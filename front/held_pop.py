"""Pops that wait for a job instead of coming back empty (native-api N3, details D16).

A queue signal wakes the oldest waiter that may serve the request; one that comes back
empty passes the wake on. The native API decides who gets a job; this only spares the
volunteers' machines the polling.
"""

import asyncio
import itertools
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from app.domain.capabilities import Declaration, Requirements, may_cover
from app.domain.redis_keys import QUEUE_CHANNEL, QueueSignal
from app.domain.refused_words import refuses
from front.doorbell import Doorbell
from front.jitter import between

log = logging.getLogger(__name__)

LONGEST_WAIT_SECONDS = 25.0
"""What existing bridges survive (details D5)."""

PASSES = 8
"""Waiters that one signal wakes at most in this process: a job that is gone must not wake everybody."""

SELECTIVE_PASSES = 64
"""The same for a request whose selection of workers only the native API can judge."""

PENDING_WAKES = 16
"""Wakes kept for a waiter that is popping already; further ones would find the same queue."""

BLIND_SECONDS = (1.0, 2.0)
"""Between pops while no signal can arrive."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A reason to pop: a request of these requirements entered the queue."""

    requirements: Requirements
    passes_left: int = PASSES


@dataclass(slots=True, eq=False)
class PopWaiter:
    """One held pop."""

    number: int
    declaration: Declaration
    worker_id: str | None = None
    popping: bool = True
    pending: list[Wake] = field(default_factory=list)
    rung: bool = False
    _listening: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it only waits."""
        return not self.popping and not self.pending

    def suits(self, requirements: Requirements) -> bool:
        """Whether it may be given such a request, as far as a front can tell.

        The worker's id is known from its first answer on.
        """
        if not may_cover(self.declaration, requirements):
            return False
        if refuses(self.declaration.blacklist, requirements.refused_words):
            return False
        if not requirements.workers or self.worker_id is None:
            return True
        return (self.worker_id in requirements.workers) != requirements.worker_blacklist

    def wake(self, wake: Wake) -> None:
        """Make it pop (again)."""
        if len(self.pending) < PENDING_WAKES:
            self.pending.append(wake)
        self.ring()

    def ring(self) -> None:
        """There is a reason to pop, or to come back."""
        self.rung = True
        if self._listening is not None:
            _finish(self._listening)

    async def heard(self, seconds: float) -> bool:
        """Whether it is rung within `seconds`.

        A bare future instead of an event and a timeout: a thousand waiters lie here at a time.
        """
        if self.rung:
            return True
        loop = asyncio.get_running_loop()
        self._listening = loop.create_future()
        timer = loop.call_later(seconds, _finish, self._listening)
        try:
            await self._listening
        finally:
            timer.cancel()
            self._listening = None
        return self.rung

    def next_wake(self) -> Wake | None:
        """Begin to pop: for the oldest wake that it was given, if there is one."""
        self.popping = True
        wake = self.pending.pop(0) if self.pending else None
        self.rung = bool(self.pending)
        return wake


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class PopQueue:
    """The waiters of this process, oldest first."""

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell
        self._numbers = itertools.count()
        self._waiters: dict[int, PopWaiter] = {}
        doorbell.listen(QUEUE_CHANNEL, self._heard, self.wake_all)

    def __len__(self) -> int:
        return len(self._waiters)

    def join(self, declaration: Declaration) -> PopWaiter:
        """Register a waiter, which counts as popping."""
        waiter = PopWaiter(next(self._numbers), declaration)
        self._waiters[waiter.number] = waiter
        return waiter

    def leave(self, waiter: PopWaiter) -> None:
        """Take a waiter out; wakes that it did not use go to others."""
        if self._waiters.pop(waiter.number, None) is None:
            return
        for wake in waiter.pending:
            self._hand(wake, self._waiters.values())

    def pass_on(self, wake: Wake, waiter: PopWaiter) -> None:
        """This waiter found nothing: let the next one try."""
        if wake.passes_left > 1:
            later = [other for other in self._waiters.values() if other.number > waiter.number]
            self._hand(replace(wake, passes_left=wake.passes_left - 1), later)

    async def wait(self, waiter: PopWaiter, seconds: float) -> bool:
        """Whether there is a reason to pop within `seconds`. While no signal can arrive, time is reason enough."""
        blind = not self._doorbell.connected
        return await waiter.heard(min(seconds, between(*BLIND_SECONDS)) if blind else seconds) or blind

    def wake_all(self) -> None:
        """Make every waiter pop, spread over two seconds: signals may have been lost."""
        loop = asyncio.get_running_loop()
        for waiter in self._waiters.values():
            loop.call_later(between(0.0, BLIND_SECONDS[1]), waiter.ring)

    def _heard(self, payload: bytes) -> None:
        try:
            requirements = Requirements.from_stored(QueueSignal.decode(payload).requirements)
        except (ValueError, KeyError, TypeError):
            log.exception("a queue signal cannot be understood")
            return
        selective = requirements.trusted_workers or requirements.validated_workers or not requirements.slow_workers
        wake = Wake(requirements, SELECTIVE_PASSES if selective else PASSES)
        self._hand(wake, self._waiters.values())

    @staticmethod
    def _hand(wake: Wake, waiters: Iterable[PopWaiter]) -> None:
        """Wake the oldest idle waiter that may serve it, else the oldest that is popping already."""
        busy: PopWaiter | None = None
        for waiter in waiters:
            if not waiter.is_idle and busy is not None:
                continue
            if not waiter.suits(wake.requirements):
                continue
            if waiter.is_idle:
                waiter.wake(wake)
                return
            busy = waiter
        if busy is not None:
            busy.wake(wake)
