"""Back-off, and work that ends with the worker."""

import asyncio

import pytest

from tools.chat_worker_example.waiting import Backoff, Interrupted, Shutdown, pause, unless


def test_delays_double_with_jitter_up_to_the_most() -> None:
    backoff = Backoff(first=1, most=4)
    for step in (1, 2, 4, 4):
        assert step / 2 <= backoff.next() <= step
    backoff.reset()
    assert backoff.next() <= 1


async def test_work_that_ends_first_gives_its_result() -> None:
    assert await unless(asyncio.Event(), asyncio.sleep(0, "done")) == "done"


async def test_work_that_fails_raises_its_own_error() -> None:
    async def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await unless(asyncio.Event(), fail())


async def test_work_is_cancelled_by_the_event() -> None:
    event, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        event.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(Interrupted):
        await unless(event, work())
    assert cancelled.is_set()


async def test_work_is_cancelled_with_its_caller() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    caller = asyncio.create_task(unless(asyncio.Event(), work()))
    await started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert cancelled.is_set()


async def test_a_pause_ends_with_its_event() -> None:
    event = asyncio.Event()
    event.set()
    async with asyncio.timeout(5):
        await pause(event, 3600)


async def test_the_stages_of_stopping_follow_each_other() -> None:
    shutdown = Shutdown(grace_seconds=0)
    shutdown.request()
    assert shutdown.requested.is_set()
    await asyncio.gather(shutdown.pops_over.wait(), shutdown.jobs_over.wait())
    assert not shutdown.submits_over.is_set()
