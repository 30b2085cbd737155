"""The pace of posted text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from front.pacing import FIRST_INTERVAL, LONGEST_INTERVAL, Pace

STEP = 0.05


def test_a_post_is_spread_evenly_over_the_expected_interval() -> None:
    pace = Pace()
    pace.posted(101, 10.0)
    assert pace.due(10.0) == 1
    pace.took(1)
    for tenth in range(1, 11):
        assert pace.due(10.0 + tenth * FIRST_INTERVAL / 10) == 10
        pace.took(10)
    assert pace.next_moment(11.0, STEP) is None


def test_the_first_letter_of_a_stream_is_due_at_once_and_no_later_one() -> None:
    pace = Pace()
    pace.posted(3, 10.0)
    assert (pace.due(10.0), pace.next_moment(10.0, STEP)) == (1, 10.0)
    pace.took(1)
    assert pace.due(10.0) == 0
    pace.took(2)
    pace.posted(3, 20.0)
    assert pace.due(20.0) == 0


def test_the_interval_follows_the_worker_and_ignores_a_pause() -> None:
    pace = Pace()
    for number in range(30):
        pace.posted(10, number * 0.5)
    assert pace.interval == pytest.approx(0.5, abs=0.01)
    pace.posted(10, 1000.0)
    assert pace.interval <= 0.5 + 0.3 * LONGEST_INTERVAL


def test_an_early_post_speeds_up_and_nothing_is_late() -> None:
    pace = Pace()
    pace.posted(101, 0.0)
    assert pace.due(0.5) == 51
    pace.took(51)
    pace.posted(10, 0.5)
    assert pace.due(1.0) >= 50


def test_the_next_moment_is_a_step_away_or_when_another_character_is_due() -> None:
    pace = Pace()
    pace.posted(100, 0.0)
    pace.took(1)
    assert pace.next_moment(0.0, STEP) == STEP
    slow = Pace()
    slow.posted(3, 0.0)
    slow.took(1)
    assert slow.next_moment(0.0, STEP) == pytest.approx(0.5)


def test_what_is_forgotten_is_not_due_and_the_next_post_is_spread_again() -> None:
    pace = Pace()
    pace.posted(100, 0.0)
    pace.took(pace.due(0.5))
    pace.forget()
    assert pace.due(0.9) == 0
    assert pace.next_moment(0.9, STEP) is None
    pace.posted(10, 1.0)
    assert pace.due(1.0) == 0
    assert pace.due(10.0) == 10


@given(
    st.lists(st.tuples(st.integers(0, 400), st.floats(0.0, 3.0)), min_size=1, max_size=12),
    st.lists(st.floats(0.01, 0.4), min_size=1, max_size=20),
    st.integers(0, 5),
)
def test_whatever_the_rhythm_no_text_waits_longer_than_one_interval(
    posts: list[tuple[int, float]], looks: list[float], more: int
) -> None:
    pace, now, posted, taken = Pace(), 0.0, 0, 0
    due_by: list[tuple[int, float]] = []
    for number, (length, gap) in enumerate(posts):
        until = now + gap
        while now < until:
            now = min(until, now + looks[number % len(looks)])
            due = min(pace.due(now), posted - taken)
            if due:
                step = min(due + more, posted - taken)
                pace.took(step)
                taken += step
            assert all(taken >= end for end, moment in due_by if moment <= now)
        pace.posted(length, now)
        posted += length
        if length:
            due_by.append((posted, now + pace.interval))
    last = max((moment for _, moment in due_by), default=now)
    assert taken + pace.due(last) >= posted
    pace.took(posted - taken)
    assert pace.next_moment(last, STEP) is None
