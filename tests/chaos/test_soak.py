"""Forty workers share many requests over HTTP while the horde's processes die under them.

`python -m bench.queue_soak` does the same with two thousand.
"""

import asyncio

import pytest

from app.domain.system_accounts import ANONYMOUS_ID
from tests.support.horde import HordeProcesses
from tests.support.soak import SoakSize, soak
from tests.support.soak_history import History, lost, overlaps, overtaken, uncovered

REQUESTS = 300


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_forty_workers_share_many_requests_while_processes_die(horde: HordeProcesses) -> None:
    horde.query("UPDATE users SET concurrency = 1000000 WHERE id <> :anonymous", anonymous=ANONYMOUS_ID)
    soaked = asyncio.run(soak(horde, SoakSize(REQUESTS)))
    horde.require_sound(60)
    history = History.read(horde, soaked.run)
    assert len(soaked.asked) == REQUESTS
    assert lost(history, soaked) == []
    assert sum(asked.state == "done" for asked in history.requests.values()) > 0.95 * REQUESTS
    assert overlaps(history) == []
    assert uncovered(history, soaked) == []
    assert overtaken(history, soaked) == []
