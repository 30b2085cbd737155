"""Reading request bodies within bounds of time and memory (front F1, details D22, reliability D3).

A body is small until it has shown to be large: thousands of small ones may come in at once.
A large one needs a place, of which there are few; a source may hold a quarter of them, and
free places go to the waiting sources in turn, so that nobody's uploads keep out others'.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable

from quart import request

from front import errors
from front.errors import FrontError, Problem
from front.exchange import Exchange

SMALL_BODY_BYTES = 64 * 1024
"""Up to this size a body needs no place."""

SHARE_OF_A_SOURCE = 4
"""One source may hold one place in so many."""


class BodyReaders:
    """The places for large bodies of one process."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._share = max(1, places // SHARE_OF_A_SOURCE)
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Bodies that wait for a place."""
        return sum(len(turns) for turns in self._waiting.values())

    async def enter(self, source: str) -> Callable[[], None]:
        """Wait for a place. Returns the way to give it back, which may be called more than once."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(source, deque()).append(turn)
        self._give_out()
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(source, turn)
            raise
        return self._release_once(source)

    def _give_out(self) -> None:
        """Give free places to sources in turn, each up to its share."""
        for source in tuple(self._waiting):
            if self._free and self._held[source] < self._share:
                self._give(source)

    def _give(self, source: str) -> None:
        turns = self._waiting[source]
        while turns and turns[0].done():
            # Its client has left, and its task has not heard of it yet.
            turns.popleft()
        if turns:
            turns.popleft().set_result(None)
            self._free -= 1
            self._held[source] += 1
        self._waiting.move_to_end(source)
        self._forget_if_idle(source)

    def _leave(self, source: str, turn: "asyncio.Future[None]") -> None:
        """A client left while it waited, or in the moment in which it got its place."""
        if turn.done() and not turn.cancelled():
            self._release(source)
            return
        turns = self._waiting.get(source)
        if turns is not None and turn in turns:
            turns.remove(turn)
            self._forget_if_idle(source)

    def _forget_if_idle(self, source: str) -> None:
        if not self._waiting[source]:
            del self._waiting[source]

    def _release_once(self, source: str) -> Callable[[], None]:
        holds = True

        def release() -> None:
            nonlocal holds
            if holds:
                holds = False
                self._release(source)

        return release

    def _release(self, source: str) -> None:
        self._free += 1
        self._held[source] -= 1
        if not self._held[source]:
            del self._held[source]
        self._give_out()


async def read_body(exchange: Exchange, readers: BodyReaders, source: str, seconds: float) -> bytes:
    """The whole request body; nothing of it stays in the request object.

    A large one holds its place until `exchange.let_body_go`, or the exchange's end.
    Raises FrontError: 408 when it is slow, 413 when it is too large, 415 when it is compressed,
    503 when no place came free.
    """
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        raise FrontError(errors.encoded_body(encoding[:40]))
    body = _Gathering(exchange, readers, source)
    try:
        async with asyncio.timeout(seconds):
            gathered = await body.gather()
    except TimeoutError:
        problem = errors.at_capacity("that send large bodies") if body.waits else body_problem(exchange, seconds)
        raise FrontError(problem) from None
    if exchange.body_too_large:
        raise FrontError(body_problem(exchange, seconds))
    return gathered


def body_problem(exchange: Exchange, seconds: float) -> Problem:
    """Why a body cannot be taken: it is too large, which is said first, or did not come in time."""
    if exchange.body_too_large:
        return errors.body_too_large(exchange.body_limit)
    return errors.body_too_slow(seconds)


class _Gathering:
    """One body that comes in."""

    def __init__(self, exchange: Exchange, readers: BodyReaders, source: str) -> None:
        self.waits = False
        self._exchange = exchange
        self._readers = readers
        self._source = source

    async def gather(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in request.body:
            if size <= SMALL_BODY_BYTES < size + len(part):
                await self._take_place()
            size += len(part)
            parts.append(part)
        return b"".join(parts)

    async def _take_place(self) -> None:
        self.waits = True
        self._exchange.hold_body(await self._readers.enter(self._source))
        self.waits = False
