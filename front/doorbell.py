"""One Redis subscription a process, shared by everything that waits (front F2, reliability B9).

A signal is a hint: it makes a waiter look sooner and carries nothing. Whoever waits
also looks by itself now and then, so that a lost signal, a broken connection or a
Redis that is down delays and loses nothing. After a reconnect everybody is rung,
because what was published meanwhile is gone.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import redis.asyncio as redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from app.domain.redis_keys import ChatEvent, chat_event
from front.jitter import around_one, between
from front.metrics import FrontMetrics

log = logging.getLogger(__name__)

CONFIRM_SECONDS = 0.25
"""How long a watcher waits for Redis to confirm; above that its poll has to do."""

SILENCE_SECONDS = 5.0
"""Silence after which the connection is tested; the same again without an answer and it is given up."""

BACK_OFF_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Pauses between attempts to connect; the last one repeats."""

RINGS_A_SECOND = 500
"""After a reconnect the rings are spread, so that not everybody reads at once."""

PROGRESS_PAYLOAD = chat_event(ChatEvent.PROGRESS)

Ring = Callable[[bytes], None]


class Bell:
    """What one waiter hears: rings on its own channel, and interruptions of the process.

    A ring with the `minor` payload is only remembered, until the waiter heeds it.
    """

    __slots__ = ("_confirmed", "_heeded", "_minor", "_remembered", "_rung", "_woken", "channel")

    def __init__(self, channel: str, minor: bytes) -> None:
        self.channel = channel
        self._minor = minor
        self._remembered = False
        self._heeded = False
        self._rung = False
        self._woken = asyncio.Event()
        self._confirmed: asyncio.Event | None = asyncio.Event()

    def ring(self, payload: bytes = b"") -> None:
        """Wake the waiter."""
        if payload == self._minor and not self._heeded:
            self._remembered = True
        else:
            self._rung = True
            self._woken.set()

    def nudge(self) -> None:
        """End the wait without a ring."""
        self._woken.set()

    def heed_minor(self, *, heeded: bool) -> None:
        """Let minor rings wake the waiter too, one that is remembered among them; or not any more."""
        self._heeded = heeded
        if heeded and self._remembered:
            self._remembered = False
            self.ring()

    def confirm(self) -> None:
        """From now on no ring is missed."""
        if self._confirmed is not None:
            self._confirmed.set()

    async def confirmation(self, seconds: float) -> bool:
        """Whether Redis confirmed the subscription within `seconds`."""
        if self._confirmed is None:
            return True
        confirmed = await _within(self._confirmed, seconds)
        if confirmed:
            self._confirmed = None
        return confirmed

    async def wait(self, seconds: float) -> bool:
        """Whether it rang within `seconds`, or until it was nudged; the ring is used up."""
        if not self._woken.is_set():
            await _within(self._woken, seconds)
        self._woken.clear()
        rang, self._rung = self._rung, False
        return rang


async def _within(event: asyncio.Event, seconds: float) -> bool:
    if seconds <= 0:
        return event.is_set()
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


class Doorbell:
    """The process's subscription: bells by channel, and one listener a shared channel."""

    def __init__(self, url: str, metrics: FrontMetrics) -> None:
        # A session of ours ends with its connection; the library must not mend it behind our back.
        self._redis = redis.Redis.from_url(
            url,
            socket_timeout=SILENCE_SECONDS,
            socket_connect_timeout=SILENCE_SECONDS,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        self._metrics = metrics
        self._bells: dict[str, tuple[Bell, ...]] = {}
        self._on_progress: Callable[[str], None] | None = None
        self._listeners: dict[str, Ring] = {}
        self._doubters: list[Callable[[], None]] = []
        self._pubsub: PubSub | None = None
        self._wanted: set[str] = set()
        self._unwanted: set[str] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Whether signals arrive right now."""
        return self._pubsub is not None

    @property
    def bells(self) -> int:
        """Waiters there are."""
        return sum(map(len, self._bells.values()))

    def listen(self, channel: str, listener: Ring, in_doubt: Callable[[], None]) -> None:
        """Hear every payload of a shared channel; `in_doubt` is called when some may be lost.

        That is when signals are interrupted, and when they arrive again. Call it before `start`.
        """
        self._listeners[channel] = listener
        self._doubters.append(in_doubt)

    def listen_to_progress(self, listener: Callable[[str], None], in_doubt: Callable[[], None]) -> None:
        """Hear the channels on which a post was announced. No bell rings for a post; see `listen` for the rest."""
        self._on_progress = listener
        self._doubters.append(in_doubt)

    def start(self) -> None:
        """Connect, and keep connected."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="doorbell")

    async def close(self) -> None:
        """Hang up."""
        # Before Python 3.12 a command that is answered in that moment swallows the cancellation.
        self._closing.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self._redis.aclose()

    async def watch(self, channel: str, minor: bytes) -> Bell:
        """A bell for `channel`, confirmed by Redis unless that is down or slow."""
        bell = self.hang(channel, minor)
        if self._pubsub is not None:
            try:
                await bell.confirmation(CONFIRM_SECONDS)
            except asyncio.CancelledError:
                self.forget(bell)
                raise
        return bell

    def hang(self, channel: str, minor: bytes) -> Bell:
        """A bell for `channel`, which Redis confirms later."""
        bell = Bell(channel, minor)
        others = self._bells.get(channel, ())
        self._bells[channel] = (*others, bell)
        if self._pubsub is not None:
            self._wanted.add(channel)
            self._unwanted.discard(channel)
            self._changed.set()
        return bell

    def forget(self, bell: Bell) -> None:
        """Take the bell down."""
        there = self._bells.get(bell.channel, ())
        left = tuple(each for each in there if each is not bell)
        if left:
            self._bells[bell.channel] = left
            return
        if self._bells.pop(bell.channel, None) is None or self._pubsub is None:
            return
        self._wanted.discard(bell.channel)
        self._unwanted.add(bell.channel)
        self._changed.set()

    async def _run(self) -> None:
        failures = 0
        while True:
            pubsub = self._redis.pubsub()
            asked = {*self._listeners, *self._bells}
            try:
                await pubsub.subscribe(*asked)
                self._up(pubsub, asked, after_failure=failures > 0)
                failures = 0
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._read(pubsub))
                    group.create_task(self._write(pubsub))
            except* (RedisError, OSError) as errors:
                if failures == 0:
                    log.warning("signals are interrupted: %s", errors.exceptions[0])
                    self._doubt()
            finally:
                self._pubsub = None
                await pubsub.aclose()  # type: ignore[no-untyped-call]
            if self._closing.is_set():
                return
            pause = BACK_OFF_SECONDS[min(failures, len(BACK_OFF_SECONDS) - 1)]
            failures += 1
            await asyncio.sleep(pause * around_one())

    def _up(self, pubsub: PubSub, asked: set[str], *, after_failure: bool) -> None:
        self._pubsub = pubsub
        self._wanted = self._bells.keys() - asked
        self._unwanted = asked - self._bells.keys() - self._listeners.keys()
        self._changed.set()
        if not after_failure:
            return
        log.info("signals arrive again")
        loop = asyncio.get_running_loop()
        spread = len(self._bells) / RINGS_A_SECOND
        for bells in self._bells.values():
            for bell in bells:
                loop.call_later(between(0.0, spread), bell.ring)
        self._doubt()

    def _doubt(self) -> None:
        for told in self._doubters:
            told()

    async def _write(self, pubsub: PubSub) -> None:
        """Send subscriptions as they are asked for: everything of one turn of the loop in one command."""
        while not self._closing.is_set():
            await self._changed.wait()
            self._changed.clear()
            wanted, self._wanted = self._wanted, set()
            unwanted, self._unwanted = self._unwanted, set()
            if wanted:
                await pubsub.subscribe(*wanted)
            if unwanted:
                await pubsub.unsubscribe(*unwanted)

    async def _read(self, pubsub: PubSub) -> None:
        tested = False
        while not self._closing.is_set():
            message = await pubsub.get_message(timeout=SILENCE_SECONDS)
            if message is not None:
                tested = False
                self._hear(message)
            elif tested:
                raise ConnectionError("Redis does not answer")
            else:
                tested = True
                await pubsub.ping()

    def _hear(self, message: dict[str, Any]) -> None:
        kind, channel = message["type"], message["channel"]
        if kind == "message":
            self._hear_signal(channel.decode(), message["data"])
        elif kind == "subscribe":
            for bell in self._bells.get(channel.decode(), ()):
                bell.confirm()
            if self._on_progress is not None:
                # What was posted before now rang nowhere.
                self._on_progress(channel.decode())

    def _hear_signal(self, channel: str, payload: bytes) -> None:
        listener = self._listeners.get(channel)
        if listener is not None:
            self._metrics.signal("queue")
            listener(payload)
        elif payload == PROGRESS_PAYLOAD and self._on_progress is not None:
            self._metrics.signal("progress")
            self._on_progress(channel)
        else:
            self._metrics.signal("chat")
            for bell in self._bells.get(channel, ()):
                bell.ring(payload)
