"""The bell of one waiter."""

import asyncio

from app.domain.redis_keys import ChatEvent, chat_channel, chat_event
from front.doorbell import Bell, Doorbell
from front.metrics import FrontMetrics

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


async def test_a_nudge_ends_the_wait_and_is_no_ring() -> None:
    bell = Bell("c", MINOR)
    waiting = asyncio.create_task(bell.wait(10))
    await asyncio.sleep(0)
    bell.nudge()
    assert not await waiting


def message(kind: str, channel: str | None, data: bytes = b"") -> dict[str, object]:
    return {"type": kind, "channel": None if channel is None else channel.encode(), "data": data}


async def test_every_bell_of_a_channel_rings_until_it_is_taken_down() -> None:
    doorbell = Doorbell("redis://nowhere", FrontMetrics())
    channel = chat_channel("r")
    first, second = await doorbell.watch(channel, MINOR), await doorbell.watch(channel, MINOR)
    doorbell._hear(message("message", channel, chat_event(ChatEvent.DONE)))
    assert await first.wait(0)
    assert await second.wait(0)
    doorbell.forget(first)
    doorbell._hear(message("message", channel, chat_event(ChatEvent.DONE)))
    assert not await first.wait(0)
    assert await second.wait(0)
    doorbell.forget(second)
    assert doorbell.bells == 0


async def test_a_post_rings_no_bell_but_is_heard() -> None:
    doorbell, heard = Doorbell("redis://nowhere", FrontMetrics()), list[str]()
    doorbell.listen_to_progress(heard.append, lambda: None)
    bell = await doorbell.watch(chat_channel("r"), MINOR)
    doorbell._hear(message("message", bell.channel, chat_event(ChatEvent.PROGRESS)))
    assert heard == [bell.channel]
    assert not await bell.wait(0)


async def test_a_channel_that_is_heard_from_now_on_is_read_for_what_rang_before() -> None:
    doorbell, heard = Doorbell("redis://nowhere", FrontMetrics()), list[str]()
    doorbell.listen_to_progress(heard.append, lambda: None)
    bell = doorbell.hang(chat_channel("r"), MINOR)
    doorbell._hear(message("subscribe", bell.channel))
    assert heard == [bell.channel]
    assert await bell.confirmation(0)


async def test_the_answer_to_a_test_of_the_connection_is_no_news() -> None:
    Doorbell("redis://nowhere", FrontMetrics())._hear(message("pong", None))
