"""Cancels of many requests in one call, as a front sends them when its clients vanish (details D12)."""

from uuid import UUID

from tests.app.services.conftest import World


def test_all_that_no_worker_has_begun_end_and_leave_the_queue(world: World) -> None:
    world.enrich()
    ids = [world.ask().id for _ in range(5)]
    assert set(world.cancel.unstarted(ids)) == set(ids)
    assert {world.status(each)["state"] for each in ids} == {"cancelled"}
    assert world.execute("SELECT count(*) FROM queue_entries") == [(0,)]
    assert world.pop().id is None
    assert world.execute("SELECT sum(hold) FROM horde_requests WHERE ended_at IS NULL") == [(None,)]


def test_what_a_worker_has_begun_stays_for_a_cancel_by_itself(world: World) -> None:
    begun, _ = world.leased()
    waiting = world.ask().id
    assert world.cancel.unstarted([begun, waiting]) == [waiting]
    assert world.status(begun)["state"] == "processing"


def test_requests_of_several_accounts_end_in_one_call(world: World) -> None:
    mine = world.ask().id
    _, world.requester_key = world.account("cid", grants=1_000_000)
    theirs = world.ask().id
    assert set(world.cancel.unstarted([mine, theirs])) == {mine, theirs}


def test_what_has_ended_or_does_not_exist_is_passed_over(world: World, some_id: UUID) -> None:
    ended = world.ask().id
    assert world.cancel.unstarted([ended]) == [ended]
    assert world.cancel.unstarted([ended, some_id]) == []
