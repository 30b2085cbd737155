"""Positions and waits from the queue's figures."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.queue_figures import ClassFigures, Place, QueueFigures, Rank, Work, place

KEYS = st.lists(st.integers(0, 10_000), min_size=1, max_size=200, unique=True).map(sorted)


def figures_of(keys: list[int], ranks: int) -> ClassFigures:
    """Figures as the refresh makes them, of entries that ask for ten tokens each."""
    each, rest = divmod(len(keys), ranks)
    sizes = [size for number in range(ranks) if (size := each + (number < rest))]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return ClassFigures.of(
        Rank(keys[start + size - 1], size, 10 * size) for start, size in zip(starts, sizes, strict=True)
    )


@given(keys=KEYS, at=st.integers(0, 10_000))
def test_a_short_queue_is_told_exactly(keys: list[int], at: int) -> None:
    ahead = sum(key < at for key in keys)
    assert figures_of(keys, len(keys)).ahead(at) == Work(ahead, 10 * ahead)


@given(keys=KEYS, ranks=st.integers(1, 32))
def test_a_place_further_back_never_has_less_before_it(keys: list[int], ranks: int) -> None:
    figures = figures_of(keys, ranks)
    work = [figures.ahead(at) for at in range(0, 10_001, 97)]
    assert all(first.entries <= second.entries + 1e-9 for first, second in pairwise(work))
    assert all(first.tokens <= second.tokens + 1e-9 for first, second in pairwise(work))
    assert figures.ahead(10_001) == figures.whole == Work(len(keys), 10 * len(keys))


@given(keys=KEYS, ranks=st.integers(1, 32))
def test_figures_come_back_from_redis_as_they_went(keys: list[int], ranks: int) -> None:
    written = QueueFigures(12.5, {3: figures_of(keys, ranks)})
    assert QueueFigures.decode(written.encode()) == written


def test_only_the_classes_that_compete_stand_ahead() -> None:
    figures = QueueFigures(0, {1: figures_of([1, 2], 2), 2: figures_of([1], 1)})
    assert figures.ahead([1, 7], 5) == Work(2, 20)


@pytest.mark.parametrize(
    ("entered_at", "speed", "expected"),
    [
        (5.0, 10.0, Place(3, 2, 9.0)),
        (9.5, 10.0, Place(3, 2, None)),
        (5.0, 0.0, Place(3, 0, 9.0)),
    ],
)
def test_a_wait_is_the_work_ahead_by_the_speed_of_those_who_do_it(
    entered_at: float, speed: float, expected: Place
) -> None:
    assert place(QueueFigures(9.0, {}), Work(2, 20), speed, entered_at) == expected


def test_without_figures_there_is_a_position_and_no_estimate() -> None:
    assert place(None, Work(), 0, 0) == Place(1, 0, None)
