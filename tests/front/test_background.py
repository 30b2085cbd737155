"""Work that outlives its exchange."""

import asyncio
import logging

import pytest

from front.background import Background


async def test_work_that_is_begun_while_the_rest_settles_is_waited_for_too() -> None:
    background, done = Background(), asyncio.Event()

    async def second() -> None:
        await asyncio.sleep(0.05)
        done.set()

    async def first() -> None:
        await asyncio.sleep(0.05)
        background.spawn(second(), "second")

    background.spawn(first(), "first")
    await background.settle(5.0)
    assert done.is_set()


async def test_work_that_does_not_end_in_time_is_cancelled() -> None:
    background, ended = Background(), asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    background.spawn(endless(), "endless")
    await background.settle(0.05)
    assert ended.is_set()


async def test_work_that_fails_is_logged_and_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    background = Background()

    async def failing() -> None:
        raise ValueError("no")

    with caplog.at_level(logging.ERROR):
        background.spawn(failing(), "a cancel")
        await background.settle(5.0)
    assert "background work failed: a cancel" in caplog.text
