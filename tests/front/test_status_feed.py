"""One read for all open status pages."""

import asyncio
from typing import cast

import pytest

from front.native import Answer, NativeApi, Unreachable
from front.status_feed import StatusFeed

SOON = 5.0


class Looks:
    """A native API that has one look more at each call, or none."""

    def __init__(self) -> None:
        self.calls = 0
        self.away = False

    async def status_events(self) -> Answer:
        """One look."""
        self.calls += 1
        if self.away:
            raise Unreachable(sent=False)
        return Answer(200, {}, f"look {self.calls}".encode())


@pytest.fixture
def looks() -> Looks:
    return Looks()


@pytest.fixture
async def feed(looks: Looks) -> StatusFeed:
    return StatusFeed(cast("NativeApi", looks), read_seconds=0.02)


async def test_all_pages_get_the_same_look_from_one_read(looks: Looks, feed: StatusFeed) -> None:
    feed._read_seconds = 3600.0
    leaving = [feed.join() for _ in range(50)]
    found = await asyncio.gather(*(feed.after(0, SOON) for _ in range(50)))
    assert set(found) == {(1, b"look 1")}
    assert looks.calls == 1
    for leave in leaving:
        leave()


async def test_a_page_gets_each_look_once_and_skips_those_it_was_too_slow_for(feed: StatusFeed) -> None:
    leave = feed.join()
    number, _ = await feed.after(0, SOON)
    while feed._number < number + 3:
        await feed.after(feed._number, SOON)
    latest, frame = await feed.after(number, SOON)
    assert (latest, frame) == (feed._number, f"look {feed._number}".encode())
    assert latest > number + 1
    leave()


async def test_nothing_is_read_for_nobody(looks: Looks, feed: StatusFeed) -> None:
    leave = feed.join()
    await feed.after(0, SOON)
    leave()
    assert feed._reading is None
    read = looks.calls
    again = feed.join()
    assert (await feed.after(0, SOON))[1] == f"look {read + 1}".encode()
    again()


async def test_who_comes_while_the_horde_is_away_is_told_and_who_is_there_waits(looks: Looks, feed: StatusFeed) -> None:
    looks.away = True
    leave = feed.join()
    assert await feed.after(0, SOON) == (0, None)
    looks.away = False
    while (await feed.after(0, SOON))[1] is None:
        pass
    looks.away = True
    while (await feed.after(feed._number, SOON))[1] is not None:
        pass
    looks.away = False
    while (await feed.after(feed._number, SOON))[1] is None:
        pass
    leave()


async def test_silence_ends_with_nothing(feed: StatusFeed) -> None:
    feed._read_seconds = 3600.0
    leave = feed.join()
    number, _ = await feed.after(0, SOON)
    assert await feed.after(number, 0.05) == (number, None)
    leave()
