"""Concurrency, upfront kudos and priority, against the wire reference's sections 4.7 to 4.9."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.admission_rules import (
    Concurrency,
    free_cap,
    free_cap_depends_on_queue,
    priority,
    queue_that_matters,
    upfront_hold,
    upfront_needed,
)


@pytest.mark.parametrize(
    ("is_anonymous", "education", "own", "limit"),
    [
        (True, False, None, 500),
        (False, False, None, 30),
        (False, True, None, 200),
        (False, True, 7, 7),
        (True, False, 3, 3),
    ],
)
def test_the_concurrency_limit_follows_the_account(
    is_anonymous: bool, education: bool, own: int | None, limit: int
) -> None:
    assert Concurrency().limit(is_anonymous=is_anonymous, education=education, own=own) == limit


@pytest.mark.parametrize(
    ("threads", "queued", "cap"),
    [(0, 0, 512), (10, 0, 512), (0, 100, 422), (0, 284, 256), (0, 10_000, 256), (20, 200, 432), (100, 1, 512)],
)
def test_the_free_cap_shrinks_with_the_queue_and_grows_with_threads(threads: int, queued: int, cap: int) -> None:
    assert free_cap(threads, queued) == cap


@given(st.integers(0, 5000), st.integers(0, 10**6))
def test_counting_the_queue_further_than_it_matters_changes_no_cap(threads: int, queued: int) -> None:
    assert free_cap(threads, queued) == free_cap(threads, min(queued, queue_that_matters(threads)))


@given(st.integers(1, 5000), st.integers(0, 500), st.integers(0, 10**5), st.booleans())
def test_the_queue_is_looked_at_wherever_it_decides(
    max_length: int, threads: int, queued: int, slow_workers: bool
) -> None:
    def needed(length_of_queue: int) -> bool:
        return upfront_needed(max_length=max_length, cap=free_cap(threads, length_of_queue), slow_workers=slow_workers)

    if not free_cap_depends_on_queue(max_length):
        assert needed(queued) == needed(0)


@pytest.mark.parametrize(
    ("max_length", "cap", "slow_workers", "needed"),
    [(512, 512, True, False), (513, 512, True, True), (16, 512, False, True), (300, 256, True, True)],
)
def test_kudos_are_held_for_a_long_request_or_one_without_slow_workers(
    max_length: int, cap: int, slow_workers: bool, needed: bool
) -> None:
    assert upfront_needed(max_length=max_length, cap=cap, slow_workers=slow_workers) is needed


@pytest.mark.parametrize(
    ("max_length", "sizes", "hold"),
    [(1024, [8.0], 390_100), (1024, [8.0, 70.0], 3_413_330), (512, [1.0], 24_380), (16, [1.0], 760)],
)
def test_the_hold_is_the_budget_times_the_largest_model_by_twenty_one(
    max_length: int, sizes: list[float], hold: int
) -> None:
    assert upfront_hold(max_length, sizes) == hold


@pytest.mark.parametrize(
    ("balance", "downgraded", "flagged", "expected"),
    [
        (20_000, False, False, 20_000),
        (-3_000, False, False, -3_000),
        (20_000, True, False, -50_000),
        (5_000, False, True, -100_000),
        (10_000, False, True, -100_000),
        (2_000_000, False, True, 2_000),
    ],
)
def test_priority_is_the_balance_unless_the_request_or_its_account_is_put_back(
    balance: int, downgraded: bool, flagged: bool, expected: int
) -> None:
    assert priority(balance, downgraded=downgraded, flagged=flagged) == expected
