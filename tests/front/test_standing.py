"""What follows from a status."""

from typing import Any

import pytest

from front.standing import Standing, failure, first_refusal, needs_queue_info
from tests.front.process.scripted_native import generation_of, status_of

GAP = {"missing": [{"name": "tools", "workers": 1}]}
LIMIT = {"limit": "max_length", "asked": 9, "largest": 4}


def standing(**changes: Any) -> Standing:
    return Standing.read(status_of("r", **changes))


@pytest.mark.parametrize(
    ("changes", "fail_fast", "code"),
    [
        ({}, False, None),
        ({}, True, None),
        ({"declaration_gap": GAP, "limits_gap": LIMIT, "eligible_threads": 0}, True, "no_worker_supports_features"),
        ({"limits_gap": LIMIT, "eligible_threads": 0}, True, "no_worker_supports_limit"),
        ({"eligible_threads": 0}, True, "queue_unavailable"),
        ({"eligible_threads": 0}, False, None),
        ({"queue_info_at": "now", "wait_time": 61}, True, "queue_unavailable"),
        ({"queue_info_at": "now", "wait_time": 60}, True, None),
        ({"queue_info_at": None, "wait_time": 61}, True, None),
        ({"state": "done", "eligible_threads": 0}, True, None),
    ],
)
def test_the_first_status_refuses_in_order(changes: dict[str, Any], fail_fast: bool, code: str | None) -> None:
    problem = first_refusal(standing(**changes), fail_fast=fail_fast, budget_seconds=60)
    assert (None if problem is None else problem.code) == code


@pytest.mark.parametrize(
    ("changes", "needed"),
    [({}, True), ({"queue_info_at": "now"}, False), ({"eligible_threads": 0}, False), ({"state": "done"}, False)],
)
def test_queue_information_is_needed_only_where_threads_exist(changes: dict[str, Any], needed: bool) -> None:
    assert needs_queue_info(standing(**changes)) is needed


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"state": "processing"}, None),
        ({"state": "done", "generations": [generation_of()]}, None),
        ({"state": "done"}, "NoGeneration"),
        ({"state": "done", "generations": [generation_of(state="faulted")]}, "NoGeneration"),
        ({"state": "faulted"}, "ChatRequestFaulted"),
        ({"state": "expired"}, "DeadlineExceeded"),
        ({"state": "cancelled"}, "NoGeneration"),
    ],
)
def test_an_end_without_a_reply_is_a_failure(changes: dict[str, Any], code: str | None) -> None:
    problem = failure(standing(**changes), 60)
    assert (None if problem is None else problem.code) == code


@pytest.mark.parametrize("broken", [{"state": "odd"}, {"generations": None}, {"processing": "x"}])
def test_what_is_no_status_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        standing(**broken)
