"""The sweep: whatever waits too long gets another turn or an end, and nothing else is touched."""

from contextlib import suppress
from uuid import UUID

import pytest
from redis import Redis
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from app.adapters.database import Transaction
from app.domain.errors import AbortedGen, LeaseEnded
from app.domain.progress import ProgressPost
from app.domain.states import GenerationState, IllegalMove, RequestState
from app.services.kudos import fold_balances, grant
from app.services.progress import PostProgress
from app.services.settle import settle_batch
from app.services.sweep import erase_bodies, publish_ended, sweep, vacuum_queue
from app.services.transitions import move_generation, move_request
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World

OVERDUE = "UPDATE generations SET next_dispatch_at = now() - interval '1 hour'"
PAST_ITS_LIFE = "UPDATE horde_requests SET expires_at = now() - interval '1 hour'"
ENDED_LONG_AGO = "UPDATE horde_requests SET ended_at = now() - interval '1 hour'"


def make_late(world: World, generation_id: UUID) -> None:
    world.execute("UPDATE generations SET deadline_at = now() - interval '1 second' WHERE id = :id", id=generation_id)


def test_a_reply_whose_verification_was_lost_is_sent_again(world: World, redis: Redis) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    redis.delete("verdict")
    world.execute(OVERDUE)
    sweep(world.runtime)
    assert redis.llen("verdict") == 1


def test_a_reply_that_is_not_due_is_left_alone(world: World, redis: Redis) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    redis.delete("verdict")
    sweep(world.runtime)
    assert redis.llen("verdict") == 0


def test_sending_again_counts_no_attempt(world: World) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    for _ in range(30):
        world.execute(OVERDUE)
        sweep(world.runtime)
    assert world.state_of("generations", generation_id) == "submitted"


def test_a_verification_that_never_ends_is_given_up_after_its_attempts(world: World) -> None:
    request_id, generation_id = world.leased()
    world.deliver(generation_id)
    world.execute("UPDATE generations SET attempts = 10")
    world.execute(OVERDUE)
    sweep(world.runtime)
    assert world.state_of("generations", generation_id) == "faulted"
    assert world.state_of("horde_requests", request_id) == "queued"


def test_a_verified_generation_that_was_not_settled_kicks_settlement(world: World, redis: Redis) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    redis.delete("settlement")
    world.execute(OVERDUE)
    sweep(world.runtime)
    assert redis.llen("settlement") == 1


def test_a_job_past_its_deadline_goes_to_another_worker(world: World) -> None:
    request_id, generation_id = world.leased()
    make_late(world, generation_id)
    sweep(world.runtime)
    assert world.state_of("generations", generation_id) == "timed_out"
    assert world.status(request_id)["state"] == "queued"
    assert world.pop().id is not None


def test_a_late_reply_is_taken_when_nobody_else_delivered(world: World) -> None:
    request_id, generation_id = world.leased()
    make_late(world, generation_id)
    sweep(world.runtime)
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    assert world.status(request_id)["state"] == "done"
    assert world.execute("SELECT 1 FROM queue_entries") == []


def test_a_late_reply_is_dropped_when_another_worker_delivered(world: World) -> None:
    _, late = world.leased()
    make_late(world, late)
    sweep(world.runtime)
    second = world.pop().id
    assert second is not None
    world.deliver(second)
    verify_generation(world.runtime, second)
    with pytest.raises(AbortedGen):
        world.deliver(late)


def test_of_two_replies_that_race_one_is_accepted_and_paid(world: World) -> None:
    _, late = world.leased()
    make_late(world, late)
    sweep(world.runtime)
    second = world.pop().id
    assert second is not None
    world.deliver(late)
    world.deliver(second)
    verify_generation(world.runtime, second)
    verify_generation(world.runtime, late)
    assert settle_batch(world.runtime) == 1
    assert {world.state_of("generations", late), world.state_of("generations", second)} == {"faulted", "settled"}


def test_a_request_past_its_life_expires(world: World) -> None:
    request_id = world.ask().id
    world.execute(PAST_ITS_LIFE)
    sweep(world.runtime)
    status = world.status(request_id)
    assert (status["state"], status["fault"]["rc"]) == ("expired", "RequestExpired")
    assert world.pop().id is None


def test_a_request_that_expires_ends_its_running_job_and_blames_nobody(world: World) -> None:
    _, generation_id = world.leased(stream=True)
    heartbeat = ProgressPost(generation_id=generation_id)
    PostProgress(world.runtime)(world.owner_key, heartbeat)
    world.execute(PAST_ITS_LIFE)
    sweep(world.runtime)
    with pytest.raises(LeaseEnded):
        PostProgress(world.runtime)(world.owner_key, heartbeat)
    with pytest.raises(AbortedGen):
        world.deliver(generation_id)
    assert world.execute("SELECT state, fault FROM generations") == [("timed_out", "request_expired")]
    assert world.execute("SELECT aborts FROM workers") == [(0,)]
    assert world.execute("SELECT count(*) FROM queue_entries") == [(0,)]


def test_a_request_whose_reply_is_being_verified_never_expires(world: World) -> None:
    request_id, generation_id = world.leased()
    world.deliver(generation_id)
    world.execute(PAST_ITS_LIFE)
    sweep(world.runtime)
    assert world.status(request_id)["state"] == "processing"
    verify_generation(world.runtime, generation_id)
    assert world.status(request_id)["state"] == "done"


def test_a_queued_request_with_a_late_reply_keeps_its_place_when_it_does_not_expire(world: World) -> None:
    request_id, generation_id = world.leased()
    make_late(world, generation_id)
    sweep(world.runtime)
    world.deliver(generation_id)
    world.execute(PAST_ITS_LIFE)
    sweep(world.runtime)
    assert world.execute("SELECT request_id FROM queue_entries") == [(request_id,)]


def test_a_late_ring_goes_to_requests_that_ended_just_now(world: World) -> None:
    request_id = world.ask().id
    assert publish_ended(world.runtime) == 0
    world.cancel(request_id, api_key=world.requester_key, trusted_front=False)
    assert publish_ended(world.runtime) == 1
    world.execute(ENDED_LONG_AGO)
    assert publish_ended(world.runtime) == 0


def test_bodies_are_erased_some_time_after_the_end_and_the_books_remain(world: World) -> None:
    request_id, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    assert erase_bodies(world.runtime) == 0
    world.execute(ENDED_LONG_AGO)
    assert erase_bodies(world.runtime) == 1
    assert world.execute("SELECT 1 FROM request_bodies UNION ALL SELECT 1 FROM replies") == []
    assert settle_batch(world.runtime) == 1
    assert world.status(request_id)["kudos"] > 0


def test_the_queue_can_be_vacuumed_while_it_is_used(world: World) -> None:
    world.ask()
    vacuum_queue(world.runtime)
    assert world.pop().id is not None


def test_folding_moves_entries_into_balances_and_changes_no_balance(world: World) -> None:
    fold_balances(world.runtime)
    before, _ = world.kudos(world.owner_id)
    with world.runtime.database.transaction() as transaction:
        grant(transaction, world.owner_id, 5000, "grant:1")
        grant(transaction, world.owner_id, 5000, "grant:1")
    assert fold_balances(world.runtime) == 2
    assert fold_balances(world.runtime) == 0
    assert world.kudos(world.owner_id) == (before + 5000, 0)


def test_a_repeated_move_is_a_no_op(world: World) -> None:
    request_id = world.ask().id
    world.cancel(request_id, api_key=world.requester_key, trusted_front=False)
    with world.runtime.database.transaction() as transaction:
        assert move_request(transaction, request_id, RequestState.CANCELLED) is False


def test_a_move_that_the_table_does_not_hold_is_an_error(world: World) -> None:
    _, generation_id = world.leased()
    with world.runtime.database.transaction() as transaction, pytest.raises(IllegalMove, match="leased -> settled"):
        move_generation(transaction, generation_id, GenerationState.SETTLED)


def test_an_effect_runs_after_the_commit_and_never_after_a_rollback(world: World) -> None:
    ran: list[str] = []

    def note(transaction: Transaction, word: str) -> None:
        transaction.after_commit(lambda: ran.append(word))

    with world.runtime.database.transaction() as transaction:
        note(transaction, "committed")
        assert ran == []
    with suppress(ProgrammingError), world.runtime.database.transaction() as transaction:
        note(transaction, "rolled back")
        transaction.execute(text("SELECT no_such_column"))
    assert ran == ["committed"]


@pytest.mark.parametrize(("hours", "requests"), [(23, 1), (25, 2)])
def test_an_operation_key_is_kept_for_a_day(world: World, hours: int, requests: int) -> None:
    world.ask("an-operation-key-of-22-chars")
    world.execute("UPDATE operation_keys SET created_at = now() - make_interval(hours => :hours)", hours=hours)
    erase_bodies(world.runtime)
    world.ask("an-operation-key-of-22-chars")
    assert world.execute("SELECT count(*) FROM horde_requests") == [(requests,)]
