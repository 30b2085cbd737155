"""What listens to Redis ends at whatever moment it is closed.

Before Python 3.12 `asyncio.wait_for` swallows a cancellation that comes when its work is just
done, and redis-py sends every command under it: a front that was stopped in that moment hung.
"""

import asyncio

import pytest

from front.doorbell import Doorbell
from front.metrics import FrontMetrics
from front.progress_reader import ProgressReader
from tests.front.process.waiting import eventually
from tests.support.services import RunningService

ENDS_WITHIN_SECONDS = 5.0
TURNS_OF_THE_LOOP = range(12)


@pytest.mark.parametrize("turns", TURNS_OF_THE_LOOP)
async def test_a_doorbell_closes_while_its_bells_are_taken_down(valkey: RunningService, turns: int) -> None:
    doorbell = Doorbell(valkey.service.url, FrontMetrics())
    doorbell.listen("queue", lambda _: None, lambda: None)
    doorbell.start()
    await eventually(lambda: doorbell.connected, "the doorbell does not reach Redis")
    for bell in [await doorbell.watch(f"chat:{number}", b"") for number in range(3)]:
        doorbell.forget(bell)
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(ENDS_WITHIN_SECONDS):
        await doorbell.close()


@pytest.mark.parametrize("turns", TURNS_OF_THE_LOOP)
async def test_a_progress_reader_closes_while_it_reads(valkey: RunningService, turns: int) -> None:
    reader = ProgressReader(valkey.service.url, FrontMetrics(), poll_seconds=60.0, is_blind=lambda: False)
    reader.start()
    follower = reader.follow("a-request", lambda _: True)
    await eventually(lambda: follower.reads > 0, "the stream is not read")
    reader.ask(follower)
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(ENDS_WITHIN_SECONDS):
        await reader.close()
