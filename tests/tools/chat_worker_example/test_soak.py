"""A day of outages, shortened: `bench/worker_soak.py` with few jobs."""

import pytest

from bench.worker_soak import most_in_a_window, soak


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_worker_loses_no_job_over_a_day_of_outages() -> None:
    outcome = await soak(jobs=150, seconds=20, threads=6, seed=7)
    assert outcome.horde_outages > 3
    assert outcome.backend_outages > 3
    assert outcome.holds, outcome


def test_the_busiest_window_is_found() -> None:
    assert most_in_a_window([], 10) == 0
    assert most_in_a_window([0, 1, 2, 30, 31, 40], 10) == 3
    assert most_in_a_window([0, 10, 20], 10) == 1
