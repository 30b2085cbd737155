"""Reads what workers post, for all open streams of a process over one connection (front F2, details D17).

A ring marks a stream; one non-blocking read then fetches everything new of all marked
streams. Rings that come while a read is under way gather for the next. Rings may be
lost, so that every stream is also read now and then, and soon after signals were interrupted.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from app.domain.progress_entries import ProgressEntry
from app.domain.redis_keys import chat_channel, progress_key
from front.doorbell import Bell, Doorbell
from front.jitter import around_one
from front.metrics import FrontMetrics

log = logging.getLogger(__name__)

NO_PAYLOAD = b""

BEGINNING = "0-0"
"""The place before the first entry."""

STREAMS_A_READ = 500
ENTRIES_A_READ = 100
"""Entries of one stream that one read fetches; where there are more, it is read again."""

READ_SECONDS = 5.0
BACK_OFF_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Pauses after reads that failed; the last one repeats."""

BLIND_SECONDS = 1.0
"""Between reads of all streams while no signal can arrive."""

Entry = tuple[str, ProgressEntry]
RawEntries = Sequence[tuple[bytes, dict[bytes, bytes]]]
Take = Callable[[Sequence[Entry]], bool]


class Follower:
    """One reader's place in one stream.

    `take` gets the entries after it, and says whether it has room for more; without, the
    stream is left alone until it is asked for. `bell` hangs where posts ring on a Redis of their own.
    """

    __slots__ = ("bell", "channel", "place", "reads", "stream", "take")

    def __init__(self, request_id: str, take: Take, place: str) -> None:
        self.channel = chat_channel(request_id)
        self.stream = progress_key(request_id).encode()
        self.take = take
        self.place = place
        self.reads = 0
        self.bell: Bell | None = None


class ProgressReader:
    """The followers of a process, and the one task that reads for them.

    `own_doorbell` is where posts ring when that is not where the requests' bells hang anyway.
    """

    def __init__(
        self,
        url: str,
        metrics: FrontMetrics,
        *,
        poll_seconds: float,
        is_blind: Callable[[], bool],
        own_doorbell: Doorbell | None = None,
    ) -> None:
        self._redis = redis.Redis.from_url(
            url,
            max_connections=1,
            socket_timeout=READ_SECONDS,
            socket_connect_timeout=READ_SECONDS,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        self._metrics = metrics
        self._poll_seconds = poll_seconds
        self._is_blind = is_blind
        self._own_doorbell = own_doorbell
        self._followers: dict[str, tuple[Follower, ...]] = {}
        self._marked: dict[Follower, None] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def __len__(self) -> int:
        return len(self._followers)

    def start(self) -> None:
        """Begin to read."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="progress")

    async def close(self) -> None:
        """Stop reading."""
        # Before Python 3.12 a command that is answered in that moment swallows the cancellation.
        self._closing.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self._redis.aclose()

    def follow(self, request_id: str, take: Take, place: str = BEGINNING) -> Follower:
        """Read this request's stream from after `place` on, beginning at once."""
        follower = Follower(request_id, take, place)
        self._followers[follower.channel] = (*self._followers.get(follower.channel, ()), follower)
        if self._own_doorbell is not None:
            follower.bell = self._own_doorbell.hang(follower.channel, NO_PAYLOAD)
        self.ask(follower)
        return follower

    def leave(self, follower: Follower) -> None:
        """Read no more for it."""
        left = tuple(each for each in self._followers.get(follower.channel, ()) if each is not follower)
        if left:
            self._followers[follower.channel] = left
        else:
            self._followers.pop(follower.channel, None)
        self._marked.pop(follower, None)
        if self._own_doorbell is not None and follower.bell is not None:
            self._own_doorbell.forget(follower.bell)
            follower.bell = None

    def ask(self, follower: Follower) -> None:
        """Read this stream soon."""
        self._marked[follower] = None
        self._news.set()

    def rang(self, channel: str) -> None:
        """A post was announced on a request's channel."""
        for follower in self._followers.get(channel, ()):
            self.ask(follower)

    def ask_all(self) -> None:
        """Read every stream: rings may have been lost."""
        for followers in self._followers.values():
            self._marked.update(dict.fromkeys(followers))
        self._news.set()

    async def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            await self._wait()
            batch = self._batch()
            if not batch:
                continue
            try:
                found = await self._read(batch)
            except (RedisError, OSError) as error:
                if failures == 0:
                    log.warning("progress cannot be read: %s", error)
                self._marked.update(dict.fromkeys(batch))
                await asyncio.sleep(BACK_OFF_SECONDS[min(failures, len(BACK_OFF_SECONDS) - 1)] * around_one())
                failures += 1
                continue
            failures = 0
            self._hand_out(batch, found)

    async def _read(self, batch: Iterable[Follower]) -> dict[bytes, RawEntries]:
        """What is new in each stream that has something new."""
        places: dict[Any, Any] = {each.stream: each.place for each in batch}
        found: Any = await self._redis.xread(places, count=ENTRIES_A_READ)
        self._metrics.progress_read(sum(len(entries) for _, entries in found))
        return dict(found)

    async def _wait(self) -> None:
        """Wait for a mark; mark everything when there was none for the poll's time."""
        if self._marked:
            return
        seconds = BLIND_SECONDS if self._is_blind() else self._poll_seconds
        try:
            async with asyncio.timeout(seconds * around_one()):
                await self._news.wait()
        except TimeoutError:
            self.ask_all()
        self._news.clear()

    def _batch(self) -> list[Follower]:
        """Marked followers, each stream once; the others stay marked."""
        batch: dict[bytes, Follower] = {}
        for follower in self._marked:
            if len(batch) == STREAMS_A_READ:
                break
            batch.setdefault(follower.stream, follower)
        for follower in batch.values():
            self._marked.pop(follower, None)
        return list(batch.values())

    def _hand_out(self, batch: Iterable[Follower], found: dict[bytes, RawEntries]) -> None:
        for follower in batch:
            follower.reads += 1
            raw = found.get(follower.stream, ())
            if raw:
                follower.place = raw[-1][0].decode()
            has_room = follower.take(_decoded(raw))
            if has_room and len(raw) == ENTRIES_A_READ:
                self.ask(follower)


def _decoded(raw: RawEntries) -> list[Entry]:
    """The entries; one that cannot be read is left out, which leaves a hole in its generation's sequence."""
    entries = []
    for name, fields in raw:
        try:
            entries.append((name.decode(), ProgressEntry.decode(fields)))
        except ValueError:
            log.exception("an entry of a progress stream cannot be read")
    return entries
