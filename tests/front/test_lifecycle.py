"""The table of a call's moves."""

from front.lifecycle import MOVES, Phase

ENDS = {Phase.ANSWERED, Phase.REFUSED, Phase.FAULTED, Phase.CANCELLED}


def test_every_phase_is_an_end_or_leads_to_one() -> None:
    assert set(Phase) - MOVES.keys() == ENDS
    reachable, step = set(), {Phase.READY}
    while step:
        reachable |= step
        step = {target for phase in step for target in MOVES.get(phase, ())} - reachable
    assert reachable == set(Phase)
