"""`GET /status/events`: the status page kept new, one read of the native API for all pages that are open here.

The native API answers with one look as one event; that answer is passed on as it is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from quart import Blueprint, Response

from app.domain.addresses import source_of
from front import errors, sse
from front.admission import Admission
from front.context import Front
from front.errors import FrontError
from front.exchange import current_exchange
from front.native import NativeApi, Unreachable
from front.responses import native_problem

READ_SECONDS = 5.0
"""How often the native API is asked while a page is open."""

MOST_PAGES = 1000
MOST_PAGES_OF_A_SOURCE = 16
"""Open pages of one front, and of one address: they have places of their own and take none from requests."""


class StatusFeed:
    """The newest look, and whoever waits for the next."""

    def __init__(self, native: NativeApi, read_seconds: float = READ_SECONDS) -> None:
        self._native = native
        self._read_seconds = read_seconds
        self._listeners = 0
        self._frame: bytes | None = None
        self._number = 0
        self._news = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def join(self) -> Callable[[], None]:
        """Be read for from now on. Returns the way to leave; nothing is read for nobody."""
        self._listeners += 1
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())

        def leave() -> None:
            self._listeners -= 1
            if self._listeners == 0 and self._reading is not None:
                self._reading.cancel()
                self._reading, self._frame = None, None

        return leave

    async def after(self, number: int, seconds: float) -> tuple[int, bytes | None]:
        """The newest look, once it is newer than that number; None when there was none within the time.

        Without any look yet, None comes as soon as the native API failed to give one.
        """
        if self._number == number or self._frame is None:
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return number, None
        return (self._number, self._frame) if self._number != number else (number, None)

    def nudge(self) -> None:
        """Wake everybody, news or not."""
        self._news.set()
        self._news = asyncio.Event()

    async def _read(self) -> None:
        while True:
            try:
                answer = await self._native.status_events()
            except Unreachable:
                answer = None
            if answer is not None and answer.status == 200:
                self._frame, self._number = answer.body, self._number + 1
            self.nudge()
            await asyncio.sleep(self._read_seconds)


def status_feed_blueprint(front: Front) -> Blueprint:
    """The route."""
    blueprint = Blueprint("status_feed", __name__)
    feed = StatusFeed(front.native)
    places = Admission(MOST_PAGES, MOST_PAGES_OF_A_SOURCE)
    front.metrics.gauge("open_status_pages", "Status pages that are kept new.", lambda: places.open)
    front.drain.at_start(feed.nudge)

    @blueprint.get("/status/events")
    async def events() -> Response:
        exchange = current_exchange()
        try:
            exchange.on_close(places.admit(source_of(exchange.address)))
            exchange.on_close(feed.join())
            number, frame = await feed.after(0, READ_SECONDS)
            if frame is None:
                raise FrontError(errors.unreachable())
        except FrontError as error:
            return native_problem(error.problem)
        response = Response(_events(front, feed, number, frame), headers=dict(sse.HEADERS))
        # Each send has its own limit, and a drain ends the stream.
        response.timeout = None
        return response

    return blueprint


async def _events(front: Front, feed: StatusFeed, number: int, frame: bytes | None) -> AsyncIterator[bytes]:
    """Every look as it comes, comments in silence, until this front stops."""
    yield frame or sse.KEEP_ALIVE
    while not front.drain.started:
        number, frame = await feed.after(number, front.settings.keep_alive_seconds)
        if not front.drain.started:
            yield frame or sse.KEEP_ALIVE
