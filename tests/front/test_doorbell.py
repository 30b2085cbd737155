"""The bell of one waiter."""

import asyncio

from front.doorbell import Bell

MINOR = b"minor"


async def test_a_ring_is_heard_once_also_when_it_came_first() -> None:
    bell = Bell("c", MINOR)
    bell.ring(b"news")
    assert await bell.wait(0)
    assert not await bell.wait(0)


async def test_a_ring_ends_the_wait() -> None:
    bell = Bell("c", MINOR)
    waiting = asyncio.create_task(bell.wait(10))
    await asyncio.sleep(0)
    bell.ring()
    assert await waiting


async def test_a_minor_ring_is_remembered_until_it_is_heeded() -> None:
    bell = Bell("c", MINOR)
    bell.ring(MINOR)
    assert not await bell.wait(0)
    bell.heed_minor(heeded=True)
    assert await bell.wait(0)
    bell.ring(MINOR)
    assert await bell.wait(0)
    bell.heed_minor(heeded=False)
    bell.ring(MINOR)
    assert not await bell.wait(0)


async def test_a_confirmation_is_waited_for_no_longer_than_asked() -> None:
    bell = Bell("c", MINOR)
    assert not await bell.confirmation(0.01)
    bell.confirm()
    assert await bell.confirmation(0)
    assert await bell.confirmation(0)
