"""Places for large bodies."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from front.bodies import BodyReaders

Release = Callable[[], None]


async def started(*waits: "asyncio.Task[Release]") -> list[bool]:
    """Which of these got a place by now."""
    for _ in range(3):
        await asyncio.sleep(0)
    return [wait.done() for wait in waits]


async def test_a_source_gets_its_share_and_the_rest_wait_while_others_are_served() -> None:
    readers = BodyReaders(8)
    flood = [asyncio.create_task(readers.enter("flood")) for _ in range(20)]
    assert (await started(*flood)).count(True) == 2
    others = [asyncio.create_task(readers.enter(f"other-{number}")) for number in range(6)]
    assert await started(*others) == [True] * 6
    assert readers.waiting == 18
    for task in (*flood, *others):
        task.cancel()
    await asyncio.wait([*flood, *others])


async def test_a_place_that_comes_free_goes_to_the_sources_in_turn() -> None:
    readers = BodyReaders(1)
    release = await readers.enter("a")
    order: list[str] = []

    async def read(source: str) -> None:
        leave = await readers.enter(source)
        order.append(source)
        leave()

    async with asyncio.TaskGroup() as group:
        for source in ("flood", "flood", "flood", "x", "y"):
            group.create_task(read(source))
        await asyncio.sleep(0)
        release()
    assert order == ["flood", "x", "y", "flood", "flood"]


async def test_a_place_is_given_back_once() -> None:
    readers = BodyReaders(1)
    release = await readers.enter("a")
    release()
    release()
    await readers.enter("a")
    second = asyncio.create_task(readers.enter("b"))
    assert await started(second) == [False]
    second.cancel()
    await asyncio.wait([second])


async def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind() -> None:
    readers = BodyReaders(1)
    release = await readers.enter("a")
    gone = asyncio.create_task(readers.enter("b"))
    await started(gone)
    gone.cancel()
    await asyncio.wait([gone])
    assert readers.waiting == 0
    release()
    await readers.enter("c")


async def test_a_client_that_leaves_as_it_gets_its_place_gives_it_back() -> None:
    readers = BodyReaders(1)
    release = await readers.enter("a")
    gone = asyncio.create_task(readers.enter("b"))
    await started(gone)
    release()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await readers.enter("c")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["enter", "leave", "cancel"])), max_size=40))
def test_whatever_comes_and_goes_no_place_is_lost_or_made(steps: list[tuple[str, str]]) -> None:
    async def play() -> None:
        readers = BodyReaders(4)
        waits: list[asyncio.Task[Release]] = []
        held: list[Release] = []
        for source, step in steps:
            if step == "enter":
                waits.append(asyncio.create_task(readers.enter(source)))
            elif step == "cancel" and waits:
                waits.pop(0).cancel()
            elif held:
                held.pop()()
            await started(*waits)
            held.extend(wait.result() for wait in waits if wait.done() and not wait.cancelled())
            waits = [wait for wait in waits if not wait.done()]
            assert len(held) <= 4
        for wait in waits:
            wait.cancel()
        for release in held:
            release()
        await asyncio.sleep(0)
        fresh = [await readers.enter(name) for name in "wxyz"]
        assert len(fresh) == 4

    asyncio.run(play())
