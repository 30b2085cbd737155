"""One of a horde's processes dies at random every few seconds, and nobody who asks behind nginx notices.

`python -m bench.replicas` does the same for five minutes.
"""

import asyncio

import pytest

from tests.support.asking import Asking
from tests.support.replica_kills import Kills, load_with_kills
from tests.support.replica_load import Load
from tests.support.replicas import NGINX, ReplicatedHorde, kind_of

FIRST = ("front", "web-2", "worker", "front-2", "tasks", "verdict-2")
"""Within a minute each kind that a completion goes through."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(NGINX is None, reason="this machine has no nginx")]


def fronts_that_wait(horde: ReplicatedHorde) -> list[str]:
    """The fronts that hold a chat request."""
    return [name for name in ("front", "front-2") if horde.figure_of(name, "horde_front_open_waits") > 0]


@pytest.mark.timeout(600)
def test_a_plain_request_whose_front_died_is_answered_by_the_other_and_charged_once(
    replicated: ReplicatedHorde,
) -> None:
    with Asking(replicated, "[[delay=4]]Killing its front.") as asking:
        asking.wait_for("leased")
        (holding,) = fronts_that_wait(replicated)
        replicated.kill(holding)
        assert asking.answer().choices[0].message.content == "Killing its front."
    replicated.require_sound(60)
    assert asking.request_states() == ["done"]
    assert asking.charges() == 1


@pytest.mark.timeout(600)
def test_no_completion_fails_but_streams_of_a_front_that_died(replicated: ReplicatedHorde) -> None:
    seen = asyncio.run(load_with_kills(replicated, Load(), Kills(seconds=75, first=FIRST)))
    assert seen.outcomes.failed == []
    assert seen.outcomes.completed > 100
    assert {kind_of(name) for name in FIRST} <= seen.killed.keys()
    assert len(seen.outcomes.cut) <= seen.fronts_killed * Load().streams
    replicated.require_sound(60)
    assert seen.stored_twice(replicated) == []
