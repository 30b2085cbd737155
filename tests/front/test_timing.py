"""When a waiting request is looked at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from front.standing import Standing
from front.timing import FAILED_READ_SECONDS, Patience, WaitClock
from tests.front.process.scripted_native import status_of

PATIENCE = Patience(deadline_seconds=100, grace_seconds=30, poll_seconds=10)
POSSIBLE = Standing.read(status_of("r"))
IN_VAIN = Standing.read(status_of("r", is_possible=False))
AT_WORK = Standing.read(status_of("r", is_possible=False, state="processing", processing=1))


def test_the_poll_follows_the_last_look_with_its_jitter() -> None:
    clock = WaitClock(PATIENCE, 0)
    assert clock.next_poll == 10
    clock.saw(POSSIBLE, 4, jitter=1.2)
    assert clock.next_poll == 16


def test_the_grace_counts_from_when_the_request_became_impossible() -> None:
    clock = WaitClock(PATIENCE, 0)
    clock.saw(IN_VAIN, 5, 1)
    clock.saw(IN_VAIN, 30, 1)
    assert clock.next_end() == 35
    assert not clock.grace_is_over(34.9)
    assert clock.grace_is_over(35)


@pytest.mark.parametrize("standing", [POSSIBLE, AT_WORK])
def test_a_request_that_somebody_can_serve_starts_no_grace(standing: Standing) -> None:
    clock = WaitClock(PATIENCE, 0)
    clock.saw(IN_VAIN, 5, 1)
    clock.saw(standing, 20, 1)
    assert not clock.grace_is_over(99)


def test_the_last_look_is_at_the_deadline() -> None:
    clock = WaitClock(PATIENCE, 0)
    clock.saw(POSSIBLE, 95, 1)
    assert clock.next_end() == 100
    assert not clock.deadline_is_over(99.9)
    assert clock.deadline_is_over(100)


def test_reads_that_fail_are_repeated_ever_later() -> None:
    clock = WaitClock(PATIENCE, 0)
    pauses = []
    for _ in range(len(FAILED_READ_SECONDS) + 1):
        clock.missed(50, 1)
        pauses.append(clock.next_poll - 50)
    assert pauses == [*FAILED_READ_SECONDS, 10]


def test_the_grace_does_not_end_a_wait_whose_status_cannot_be_read() -> None:
    clock = WaitClock(PATIENCE, 0)
    clock.saw(IN_VAIN, 5, 1)
    clock.missed(20, 1)
    assert (clock.next_end(), clock.is_in_doubt) == (100, True)
    clock.saw(IN_VAIN, 25, 1)
    assert (clock.next_end(), clock.is_in_doubt) == (35, False)


@given(st.lists(st.tuples(st.sampled_from(["saw", "vain", "missed"]), st.floats(0.1, 5)), max_size=40))
def test_a_poll_is_always_ahead_and_no_wait_outlasts_the_deadline(moves: list[tuple[str, float]]) -> None:
    clock, now = WaitClock(PATIENCE, 0), 0.0
    for move, step in moves:
        now += step
        if move == "missed":
            clock.missed(now, 1)
        else:
            clock.saw(POSSIBLE if move == "saw" else IN_VAIN, now, 1)
        assert clock.next_poll > now
        assert clock.next_end() <= clock.deadline
        assert clock.next_end() > now or clock.grace_is_over(now) or clock.deadline_is_over(now)
