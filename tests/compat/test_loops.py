"""Half an hour in the life of two existing bridges, in thirty seconds, without a punishment.

A bridge's seconds pass sixty times as fast; the horde's own periods are settings, and the test
horde's are short. The rate limits are those that the horde is shipped with, save for the pace.
"""

import threading
import time
from collections.abc import Iterator

import pytest

from app.domain.system_accounts import ANONYMOUS_KEY
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until
from tests.support.text_bridge import TextBridge
from tests.support.text_loops import Clock, KoboldLoop, ScribeLoop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

LIFE_SECONDS = 1800
PACE = 60
EVERY_SECONDS = 30
"""A requester asks this often, by the bridges' clock."""


@pytest.fixture
def client(horde: HordeProcesses) -> Iterator[TextBridge]:
    with TextBridge(horde, horde.front) as made:
        yield made


def test_half_an_hour_of_koboldcpp_and_a_scribe_brings_no_punishment(horde: HordeProcesses, client: TextBridge) -> None:
    over = threading.Event()
    clock = Clock(PACE, over)
    kobold = KoboldLoop(horde.front, KEYS.worker, client.model, clock)
    # Its backend fails for two jobs in ten, which is what a busy one does.
    scribe = ScribeLoop(horde.front, KEYS.worker, client.model, clock, backend_fails=lambda job: job % 10 in {3, 7})
    threads = [threading.Thread(target=loop.run) for loop in (kobold, scribe)]
    for thread in threads:
        thread.start()
    ends = time.monotonic() + LIFE_SECONDS / PACE
    asked: list[str] = []
    while time.monotonic() < ends:
        asked.append(client.ask(KEYS.demo if len(asked) % 2 else ANONYMOUS_KEY, params={"max_length": 80}))
        clock.sleep(EVERY_SECONDS)
    try:
        wait_until(lambda: all(client.status(each)["done"] for each in asked), 60, "not every request was served")
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    assert kobold.life.punished == scribe.life.punished == 0, (kobold.life.said, scribe.life.said)
    assert kobold.life.delivered + scribe.life.delivered == len(asked)
    assert min(kobold.life.delivered, scribe.life.delivered) > 0
    assert min(kobold.life.rewards, scribe.life.rewards) > 0
    told = [client.status(each) for each in asked]
    assert not any(each["faulted"] for each in told)
    assert sum(each["restarted"] for each in told) == scribe.life.failed
    paused = horde.query("SELECT name FROM workers WHERE maintenance OR paused")
    assert paused == []
