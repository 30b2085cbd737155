"""When the worker asks for no jobs: quiet hours, and close to the limit of aborted jobs."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde
from tests.tools.chat_worker_example.worker_process import running_worker
from tools.chat_worker_example.aborts import AbortBudget
from tools.chat_worker_example.hours import parse_spans, quiet_seconds

LIMIT, HOUR = 20, 3600.0


@pytest.mark.parametrize(
    ("clock", "seconds"),
    [
        ("22:59:59", 0),
        ("23:00:00", 8 * 3600),
        ("23:30:30", 7.5 * 3600 - 30),
        ("06:59:59", 1),
        ("07:00:00", 0),
        ("12:15:00", 15 * 60),
    ],
)
def test_quiet_hours_last_to_the_end_of_their_span(clock: str, seconds: float) -> None:
    now = datetime.fromisoformat(f"2026-03-01T{clock}")
    assert quiet_seconds(parse_spans("23:00-07:00, 12:00-12:30"), now) == seconds


def test_of_spans_that_overlap_the_longer_one_counts() -> None:
    now = datetime.fromisoformat("2026-03-01T12:00:00")
    assert quiet_seconds(parse_spans("11:00-12:30,12:00-14:00"), now) == 2 * 3600


def test_without_spans_no_hour_is_quiet() -> None:
    assert quiet_seconds((), datetime.fromisoformat("2026-03-01T03:00:00")) == 0


@given(st.lists(st.tuples(st.floats(0, 600), st.booleans()), max_size=200), st.integers(1, LIMIT // 2))
def test_a_worker_of_few_threads_never_passes_the_limit_whatever_fails(
    asks: list[tuple[float, bool]], threads: int
) -> None:
    budget, aborted, now = AbortBudget(LIMIT, HOUR), [], 0.0
    running: list[bool] = []
    for pause, fails in asks:
        now += pause
        if budget.wait_seconds(now, len(running)) == 0 and len(running) < threads:
            running.append(fails)
        elif running and running.pop(0):
            budget.record(now)
            aborted.append(now)
        assert sum(moment > now - HOUR for moment in aborted) <= LIMIT


def test_a_rest_ends_when_the_oldest_abort_is_an_hour_old() -> None:
    budget = AbortBudget(LIMIT, HOUR)
    for moment in range(LIMIT):
        budget.record(float(moment))
    assert budget.wait_seconds(100.0, running=0) == HOUR - 100
    assert budget.wait_seconds(HOUR, running=0) == 0


@pytest.mark.parametrize("threads", [1, 50])
def test_a_worker_without_aborts_is_never_held_back(threads: int) -> None:
    assert AbortBudget(LIMIT, HOUR).wait_seconds(0, running=threads - 1) == 0


async def test_the_worker_rests_before_it_is_put_into_maintenance(
    horde: ScriptedHorde, environment: dict[str, str]
) -> None:
    async with running_worker(**environment, ABORT_LIMIT="3", ABORT_WINDOW_SECONDS="600") as worker:
        for _ in range(5):
            await horde.give("[[status=400]]")
        resting = await worker.event("resting")
        assert resting["reason"] == "close to the limit of aborted jobs"
    assert len(horde.submits) == 3


async def test_refused_replies_count_as_aborts_and_lost_ones_do_not(
    horde: ScriptedHorde, environment: dict[str, str]
) -> None:
    horde.submit_script.extend([(404, {}), (400, {"rc": "ChatReplyRefused", "message": "no"})])
    async with running_worker(**environment, ABORT_LIMIT="1") as worker:
        for _ in range(3):
            await horde.give("hello")
        await worker.event("resting")
    assert len(horde.submits) == 2


async def test_in_quiet_hours_no_job_is_asked_for(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    async with running_worker(**environment, QUIET_HOURS="00:00-12:00,12:00-00:00") as worker:
        resting = await worker.event("resting")
        assert resting["reason"] == "quiet hours"
    assert horde.pops == []
