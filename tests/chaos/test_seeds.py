"""Eight seeds of the chaos runner, which between them meet every fault; and what the runner itself must be able to do.

A longer run of one seed: `python -m tests.chaos.runner --seed N --seconds 60`.
"""

from collections.abc import Sequence

import pytest

from tests.chaos.clients import TORN, Asked
from tests.chaos.reckoning import Made, asked_wrong
from tests.chaos.runner import Chaos
from tests.chaos.schedule import SEEDS_A_DECK, every_fault, schedule

SECONDS = 40
LONGEST = 3.0

FAULTS = every_fault(clock=True, disk=True)
MADE: list[Made] = [("an id", "done", -1.0, 1)]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(SEEDS_A_DECK))
def test_nothing_is_lost_doubled_or_left_behind(seed: int) -> None:
    run = Chaos(seed, SECONDS, LONGEST).go()
    assert run.findings == [], f"{run}"
    assert sum(one.content is not None for one in run.asked) > len(run.asked) / 5, f"{run}"


def test_a_seed_is_always_the_same_schedule() -> None:
    assert schedule(5, 60, FAULTS) == schedule(5, 60, FAULTS)
    assert schedule(5, 60, FAULTS) != schedule(6, 60, FAULTS)


@pytest.mark.parametrize("first", [0, 8, 96])
def test_eight_seeds_in_a_row_meet_every_fault(first: int) -> None:
    met = {step.fault for seed in range(first, first + SEEDS_A_DECK) for step in schedule(seed, 10, FAULTS)}
    assert met == set(FAULTS)


def test_a_schedule_fills_its_time() -> None:
    steps = schedule(3, 60, FAULTS)
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert 50 < steps[-1].at < 65


def test_a_request_that_was_answered_once_is_right() -> None:
    assert asked_wrong(Asked("chat", "a.", 200, content="a."), MADE) == []


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        (Asked("chat", "a.", 200, content="b."), MADE),
        (Asked("chat", "a.", 200, content="a."), []),
        (Asked("chat", "a.", 200, content="a."), [("an id", "done", -1.0, 0)]),
        (Asked("chat", "a.", 200, content="a."), [("an id", "done", -1.0, 2)]),
        (Asked("leave", "a.", left=True), MADE * 2),
        (Asked("poll", "a.", 202, request_id="another"), MADE),
        (Asked("chat", "a.", 500), MADE),
        (Asked("poll", "a.", 404), MADE),
        (Asked("stream", "a.", 200, code=TORN), MADE),
        (Asked("chat", "a.", 200), MADE),
        (Asked("chat", "a.", hung=True), MADE),
    ],
)
def test_whatever_is_wrong_with_a_request_is_found(asked: Asked, made: Sequence[Made]) -> None:
    assert asked_wrong(asked, made)
