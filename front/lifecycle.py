"""The life of one chat request, from its submit to its end (front F1).

    READY ─► SUBMITTING ─► WAITING ─► ANSWERED
                 │            ├─────► FAULTED
                 │            └─────► CANCELLED
                 └─► REFUSED

Every end but an answer, a refusal and a fault cancels the request at the horde;
`close` does so for a client that left. Nobody polls more than the fallback says:
a request is read again on a signal, at the grace, at the deadline, or then. The
polls of all calls go out together and wake only whom they bring news.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

from app.domain.redis_keys import ChatEvent, chat_channel, chat_event
from app.domain.states import RequestState
from config.fault_points import FaultPoint, reach
from front import errors
from front.cancels import Cancels
from front.doorbell import Bell, Doorbell
from front.drain import Drain
from front.errors import FrontError, Problem
from front.jitter import around_one
from front.metrics import FrontMetrics
from front.native import NativeApi, Unreachable
from front.standing import Standing, failure, first_refusal, needs_queue_info
from front.status_reads import Look, StatusReads
from front.submission import Accepted, NotAccepted, Order, submit
from front.timing import Patience, WaitClock

log = logging.getLogger(__name__)

QUEUE_INFO_SECONDS = 2.0
"""How long `fail_fast` waits for the queue's figures to know the request (details D4)."""

QUEUE_INFO_STEP_SECONDS = 0.4

QUEUED_PAYLOAD = chat_event(ChatEvent.QUEUED)


class Phase(StrEnum):
    """Where a call is in its life."""

    READY = "ready"
    SUBMITTING = "submitting"
    WAITING = "waiting"
    ANSWERED = "answered"
    REFUSED = "refused"
    FAULTED = "faulted"
    CANCELLED = "cancelled"


MOVES: Mapping[Phase, frozenset[Phase]] = {
    Phase.READY: frozenset({Phase.SUBMITTING}),
    Phase.SUBMITTING: frozenset({Phase.WAITING, Phase.REFUSED, Phase.CANCELLED}),
    Phase.WAITING: frozenset({Phase.ANSWERED, Phase.FAULTED, Phase.CANCELLED}),
}
"""The moves there are; every phase that is no key is an end."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every call of a process shares."""

    native: NativeApi
    statuses: StatusReads
    doorbell: Doorbell
    cancels: Cancels
    drain: Drain
    metrics: FrontMetrics
    patience: Patience


class ChatCall:
    """One request of one client."""

    def __init__(self, surroundings: Surroundings, order: Order, *, fail_fast: bool) -> None:
        self.phase = Phase.READY
        self.request_id = order.proposed_id
        self.relayed: Callable[[], Mapping[str, str] | None] = lambda: None
        self._around = surroundings
        self._order: Order | None = order
        self._caller = order.caller
        self._fail_fast = fail_fast
        self._started = time.monotonic()
        self._clock = WaitClock(surroundings.patience, self._started)
        self._standing: Standing | None = None
        self._version: str | None = None
        self._looked_at = self._started
        self._bell: Bell | None = None
        self._interrupted = False
        self._uninterrupt: Callable[[], None] = surroundings.drain.at_end(self._interrupt)

    async def submit(self) -> None:
        """Submit, and decide on the first status: what is refused here is refused before any header.

        Raises FrontError.
        """
        self._bell = await self._around.doorbell.watch(chat_channel(self.request_id), QUEUED_PAYLOAD)
        accepted = await self._accepted()
        reach(FaultPoint.FRONT_SUBMITTED)
        self._move(Phase.WAITING)
        if accepted.request_id != self.request_id:
            await self._follow(accepted)
        self._take(accepted.status)
        await self._pass_first_status()

    async def reply(self, seconds: float) -> Standing | None:
        """Wait for the reply, or return None after `seconds` in which there was none.

        Raises FrontError.
        """
        until = time.monotonic() + seconds
        while True:
            self._stop_if_over()
            standing = self._standing
            if standing is not None and standing.has_reply:
                reach(FaultPoint.FRONT_ANSWER_READ)
                self._move(Phase.ANSWERED)
                return standing
            if time.monotonic() >= until:
                return None
            await self._look(until)

    async def final_reply(self) -> Standing:
        """Wait for the reply, however long that takes.

        Raises FrontError.
        """
        standing = None
        while standing is None:
            standing = await self.reply(float("inf"))
        return standing

    def close(self) -> None:
        """End the call. A request that the horde may still hold is cancelled: its client has gone."""
        if self.phase in {Phase.SUBMITTING, Phase.WAITING}:
            doubtful = self.phase is Phase.SUBMITTING
            self._move(Phase.CANCELLED)
            self._cancel(doubtful=doubtful)
        self._around.statuses.polls.drop(self)
        if self._bell is not None:
            self._around.doorbell.forget(self._bell)
        self._uninterrupt()
        self._around.metrics.chat_ended(self.phase.value, time.monotonic() - self._started)

    async def _accepted(self) -> Accepted:
        """Submit. The body is let go with it: a wait may be long, and a body large."""
        order, self._order = self._order, None
        if order is None:
            raise RuntimeError("a call is submitted once")
        self._move(Phase.SUBMITTING)
        try:
            return await submit(self._around.native, order, self._around.metrics)
        except NotAccepted as outcome:
            self._move(Phase.REFUSED)
            if outcome.doubtful:
                self._cancel(doubtful=True)
            refusal = FrontError(outcome.problem)
            raise (refusal if outcome.refused or not outcome.doubtful else refusal.after_submit()) from None

    async def _follow(self, accepted: Accepted) -> None:
        """Listen to the id that the horde chose, which it does without a passkey, and look at once."""
        if self._bell is not None:
            self._around.doorbell.forget(self._bell)
        self.request_id = accepted.request_id
        self._bell = await self._around.doorbell.watch(chat_channel(accepted.request_id), QUEUED_PAYLOAD)
        self._bell.ring()

    async def _pass_first_status(self) -> None:
        look_again_until = time.monotonic() + QUEUE_INFO_SECONDS
        while True:
            self._stop_if_over()
            standing, now = self._standing, time.monotonic()
            if standing is None:
                await self._look(self._clock.deadline)
                continue
            refusal = first_refusal(standing, fail_fast=self._fail_fast, budget_seconds=self._clock.deadline - now)
            if refusal is not None:
                self._give_up(refusal)
            if standing.state is RequestState.PREPARING:
                await self._look_while_preparing()
            elif self._fail_fast and needs_queue_info(standing) and now < look_again_until:
                if not await self._look(now + QUEUE_INFO_STEP_SECONDS):
                    await self._read()
            else:
                return

    async def _look_while_preparing(self) -> None:
        """Wait for the images: the only time at which entering the queue is news."""
        if self._bell is not None:
            self._bell.heed_minor(heeded=True)
            await self._look(self._clock.deadline)
            self._bell.heed_minor(heeded=False)

    async def _look(self, until: float) -> bool:
        """Wait for a ring, a poll's news or the wait's end, and read unless the poll did; or only until `until`.

        Whether it read.
        """
        if self._bell is None:
            raise RuntimeError("only a submitted call waits")
        moment = min(self._clock.next_end(), until)
        rang = await self._bell.wait(moment - time.monotonic())
        if self._interrupted:
            self._give_up(errors.draining())
        due = rang or time.monotonic() >= self._clock.next_end()
        if due:
            await self._read()
        return due

    async def _read(self) -> None:
        try:
            look = await self._around.statuses.read(self.request_id, self._caller, self._version)
        except Unreachable:
            self._missed()
            return
        if look.unknown:
            self._give_up(errors.no_generation("the horde does not know it any more"))
        if look.unchanged and self._standing is not None:
            self._saw(self._standing)
        else:
            self._take(look.status)

    def wake(self) -> None:
        """Time for a poll: together with all others, or by oneself where the native API does not know this front."""
        if self._around.statuses.can_batch:
            self._around.statuses.check(self.request_id, self._version, self._polled)
        elif self._bell is not None:
            self._bell.ring()

    def _polled(self, found: Look | Unreachable) -> None:
        """A poll came back. Its call is woken for news alone."""
        if self.phase is not Phase.WAITING or self._bell is None:
            return
        if isinstance(found, Unreachable):
            self._missed()
            return
        before, was_in_doubt = self._standing, self._clock.is_in_doubt
        if found.unknown:
            self._bell.ring()
        elif found.unchanged and before is not None:
            self._saw(before)
        else:
            self._take(found.status)
        if was_in_doubt or self._standing != before:
            self._bell.nudge()

    def _take(self, status: Mapping[str, Any] | None) -> None:
        try:
            standing = Standing.read(status or {})
        except (KeyError, TypeError, ValueError):
            log.exception("a status cannot be understood")
            self._missed()
            return
        self._version = (status or {}).get("version")
        self._saw(standing)

    def _saw(self, standing: Standing) -> None:
        self._standing = standing
        self._looked_at = time.monotonic()
        self._clock.saw(standing, self._looked_at, around_one())
        self._around.statuses.polls.set(self, self._clock.next_poll)

    def _missed(self) -> None:
        self._looked_at = time.monotonic()
        self._clock.missed(self._looked_at, around_one())
        self._around.statuses.polls.set(self, self._clock.next_poll)

    def _stop_if_over(self) -> None:
        """Fail when the last look says so. Time that passed since does not count: a reply may have come with it."""
        patience = self._around.patience
        standing = self._standing
        if standing is not None and standing.has_ended:
            problem = failure(standing, patience.deadline_seconds)
            if problem is None:
                return
            if standing.state is RequestState.FAULTED:
                self._move(Phase.FAULTED)
                raise FrontError(problem).after_submit()
            self._give_up(problem)
        if self._clock.deadline_is_over(self._looked_at):
            self._give_up(errors.deadline_exceeded(patience.deadline_seconds))
        if self._clock.grace_is_over(self._looked_at):
            self._give_up(errors.no_eligible_worker(patience.grace_seconds))

    def _give_up(self, problem: Problem) -> NoReturn:
        self._move(Phase.CANCELLED)
        if self._standing is None or not self._standing.has_ended:
            self._cancel(doubtful=False)
        raise FrontError(problem).after_submit()

    def _cancel(self, *, doubtful: bool) -> None:
        self._around.cancels.begin(self.request_id, self._caller, self.relayed(), doubtful=doubtful)

    def _interrupt(self) -> None:
        self._interrupted = True
        if self._bell is not None:
            self._bell.ring()

    def _move(self, target: Phase) -> None:
        if target not in MOVES.get(self.phase, frozenset()):
            raise RuntimeError(f"a call cannot move from {self.phase} to {target}")
        self.phase = target
