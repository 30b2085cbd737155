"""The simulated horde: its way is whole, and it behaves as queues do."""

from collections import defaultdict

import pytest

from bench.simulate import AFTERWARDS, ANSWERED, COSTS, at_rate, needed, on_one_machine

ONE_OF_EACH = dict.fromkeys(COSTS, 1)


def test_the_steps_of_each_process_are_all_that_it_spends_on_a_completion() -> None:
    shares: dict[str, float] = defaultdict(float)
    for name, share in (*ANSWERED, *AFTERWARDS):
        shares[name] += share
    assert shares == pytest.approx(dict.fromkeys(COSTS, 1.0))


def test_a_horde_that_is_hardly_asked_adds_what_its_steps_take() -> None:
    horde = at_rate(ONE_OF_EACH, COSTS, 1, completions=1000)
    taken = [share * COSTS[name] for name, share in ANSWERED]
    assert sum(horde.latencies) / len(horde.latencies) == pytest.approx(sum(taken), rel=0.1)


def test_what_costs_most_gives_out_first_and_is_busy_as_its_cost_says() -> None:
    name, share = at_rate(ONE_OF_EACH, COSTS, 100, completions=1000).busiest()
    assert name == "web"
    assert share == pytest.approx(100 * COSTS["web"] / 1000, rel=0.1)


def test_a_horde_near_its_end_adds_more_and_replicas_take_it_away() -> None:
    calm, crowded = (at_rate(ONE_OF_EACH, COSTS, rate, completions=1000).percentile(0.95) for rate in (20, 165))
    assert crowded > 3 * calm
    assert at_rate(needed(COSTS, 165), COSTS, 165, completions=1000).percentile(0.95) < crowded / 2


@pytest.mark.parametrize("cores", [1, 2])
def test_one_machine_does_no_more_than_its_cores_can(cores: int) -> None:
    rate = on_one_machine(COSTS, clients=32, threads=8, cores=cores, seconds=10)
    assert rate < 1000 * cores / sum(COSTS.values())
