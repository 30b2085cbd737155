"""The alarm clock of all streams."""

import asyncio
import time

from front.wheel import Wheel


class Sleeper:
    def __init__(self) -> None:
        self.woken = asyncio.Event()

    def wake(self) -> None:
        self.woken.set()


async def test_a_sleeper_is_woken_at_its_last_moment_and_not_before() -> None:
    wheel, sleeper = Wheel(), Sleeper()
    start = time.monotonic()
    wheel.set(sleeper, start + 60)
    wheel.set(sleeper, start + 0.05)
    async with asyncio.timeout(5):
        await sleeper.woken.wait()
    assert time.monotonic() >= start + 0.05
    assert len(wheel) == 0


async def test_a_sleeper_that_was_dropped_sleeps_on_and_others_wake() -> None:
    wheel, dropped, other = Wheel(), Sleeper(), Sleeper()
    start = time.monotonic()
    wheel.set(dropped, start)
    wheel.set(other, start + 0.03)
    wheel.drop(dropped)
    wheel.drop(dropped)
    async with asyncio.timeout(5):
        await other.woken.wait()
    assert not dropped.woken.is_set()


async def test_a_moment_is_brought_forward_only_for_who_sleeps_and_only_to_an_earlier_one() -> None:
    wheel, sleeper = Wheel(), Sleeper()
    wheel.bring_forward(sleeper, time.monotonic())
    assert len(wheel) == 0
    wheel.set(sleeper, time.monotonic() + 0.02)
    wheel.bring_forward(sleeper, time.monotonic() + 60)
    async with asyncio.timeout(5):
        await sleeper.woken.wait()


async def test_many_sleepers_of_one_moment_wake_together() -> None:
    wheel, sleepers = Wheel(), [Sleeper() for _ in range(500)]
    moment = time.monotonic() + 0.02
    for sleeper in sleepers:
        wheel.set(sleeper, moment)
    async with asyncio.timeout(5):
        await asyncio.gather(*(sleeper.woken.wait() for sleeper in sleepers))
    assert len(wheel) == 0
