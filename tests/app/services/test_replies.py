"""A worker's submit, its verification, and what each end of a generation means for its request."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from redis import Redis

from app.domain.errors import AbortedGen, ChatReplyRefused, InvalidJobId, RequestNotFound, WrongCredentials
from app.domain.redis_keys import chat_channel
from app.domain.system_accounts import HORDE_ID
from app.services.settle import settle_batch
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import Listen, World

FORCED = {
    "tools": [{"type": "function", "function": {"name": "look_up"}}],
    "horde": {"conformance": "best_effort"},
}
FOREIGN_CALL = {
    "message": {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "rm", "arguments": "{}"}}]},
    "finish_reason": "tool_calls",
}


def test_a_reply_is_stored_and_its_verification_is_sent(world: World, redis: Redis) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    assert world.state_of("generations", generation_id) == "submitted"
    assert redis.llen("verdict") == 1


def test_an_unverified_reply_is_not_shown(world: World) -> None:
    request_id, generation_id = world.leased()
    world.deliver(generation_id)
    assert world.status(request_id)["generations"] == []
    assert world.status(request_id)["done"] is False


def test_a_verified_reply_ends_its_request_and_shows_its_amounts_at_once(world: World) -> None:
    request_id, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    status = world.status(request_id)
    assert status["state"] == "done"
    assert status["generations"][0]["message"]["content"] == "Hello there, friend."
    assert status["kudos"] > 2


def test_the_requesters_front_is_rung_when_the_reply_is_verified(world: World, listen: Listen) -> None:
    request_id, generation_id = world.leased()
    next_message = listen(chat_channel(str(request_id)))
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    assert next_message() is not None


def test_the_same_submit_again_is_answered_with_the_first_reward(world: World) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    first = world.replies.deliver(world.owner_key, generation_id, world.reply())
    settle_batch(world.runtime)
    again = world.replies.deliver(world.owner_key, generation_id, world.reply())
    assert first.reward == again.reward
    assert first.reward is not None


def test_one_submit_sent_eight_times_at_once_is_taken_each_time(world: World) -> None:
    _, generation_id = world.leased()
    with ThreadPoolExecutor(8) as pool:
        receipts = list(
            pool.map(lambda _: world.replies.deliver(world.owner_key, generation_id, world.reply()), range(8))
        )
    assert {receipt.reward for receipt in receipts} == {None}
    assert world.execute("SELECT count(*) FROM replies") == [(1,)]


def test_verification_run_four_times_at_once_comes_to_one_verdict(world: World) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: verify_generation(world.runtime, generation_id), range(4)))
    assert world.state_of("generations", generation_id) == "verified"


def test_a_settled_generation_moves_charge_reward_and_fee_once(world: World) -> None:
    before = [*world.kudos(world.requester_id), sum(world.kudos(world.owner_id)), *world.kudos(HORDE_ID)]
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: settle_batch(world.runtime), range(4)))
    assert sum(counts) == 1
    after = [*world.kudos(world.requester_id), sum(world.kudos(world.owner_id)), *world.kudos(HORDE_ID)]
    paid, _, earned, fee, _ = (new - old for new, old in zip(after, before, strict=True))
    assert -paid == earned + fee
    assert fee == 2000
    world.require_sound(at_rest=True)


def test_a_refused_reply_goes_to_another_worker_and_costs_nothing(world: World) -> None:
    request_id, generation_id = world.leased(**FORCED)
    world.deliver(generation_id, FOREIGN_CALL)
    verify_generation(world.runtime, generation_id)
    assert world.state_of("generations", generation_id) == "refused"
    assert world.state_of("horde_requests", request_id) == "queued"
    assert settle_batch(world.runtime) == 0


def test_a_refused_reply_is_refused_again_with_its_reason(world: World) -> None:
    _, generation_id = world.leased(**FORCED)
    world.deliver(generation_id, FOREIGN_CALL)
    verify_generation(world.runtime, generation_id)
    with pytest.raises(ChatReplyRefused, match="not among the client"):
        world.deliver(generation_id, FOREIGN_CALL)


def test_three_faulted_generations_fault_the_request(world: World) -> None:
    request_id = world.ask().id
    for _ in range(3):
        job = world.pop()
        assert job.id is not None
        world.replies.fault(world.owner_key, job.id, "backend_error")
    status = world.status(request_id)
    assert (status["state"], status["restarted"]) == ("faulted", 3)
    assert status["fault"]["rc"] == "ChatRequestFaulted"


def test_one_generations_fault_counts_once_however_often_it_is_reported(world: World) -> None:
    request_id, generation_id = world.leased()
    for _ in range(5):
        world.replies.fault(world.owner_key, generation_id, "backend_error")
    assert world.status(request_id)["restarted"] == 1


def test_a_fault_after_the_reply_was_stored_changes_nothing(world: World) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    with pytest.raises(AbortedGen):
        world.replies.fault(world.owner_key, generation_id, "backend_error")
    assert world.state_of("generations", generation_id) == "submitted"


def test_a_reply_after_the_job_was_faulted_is_aborted(world: World) -> None:
    _, generation_id = world.leased()
    world.replies.fault(world.owner_key, generation_id, "backend_error")
    with pytest.raises(AbortedGen):
        world.deliver(generation_id)


def test_a_job_that_was_never_given_out_is_unknown(world: World, some_id: UUID) -> None:
    with pytest.raises(InvalidJobId):
        world.deliver(some_id)


def test_another_accounts_job_cannot_be_submitted(world: World) -> None:
    _, generation_id = world.leased()
    with pytest.raises(WrongCredentials):
        world.replies.deliver(world.requester_key, generation_id, world.reply())


def test_a_cancelled_request_leaves_the_queue_and_costs_nothing(world: World) -> None:
    request_id = world.ask().id
    status = world.cancel(request_id, api_key=world.requester_key, trusted_front=False)
    assert status["state"] == "cancelled"
    assert world.pop().id is None


def test_a_second_cancel_answers_the_state_it_reached(world: World) -> None:
    request_id = world.ask().id
    first = world.cancel(request_id, api_key=world.requester_key, trusted_front=False)
    assert world.cancel(request_id, api_key=world.requester_key, trusted_front=False) == first


def test_a_running_generation_is_paid_after_its_request_was_cancelled(world: World) -> None:
    request_id, generation_id = world.leased()
    world.cancel(request_id, api_key=world.requester_key, trusted_front=False)
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    assert settle_batch(world.runtime) == 1
    assert world.state_of("horde_requests", request_id) == "cancelled"


def test_a_submit_that_came_before_the_cancel_wins(world: World) -> None:
    request_id, generation_id = world.leased()
    world.deliver(generation_id)
    assert world.cancel(request_id, api_key=world.requester_key, trusted_front=False)["state"] == "processing"
    verify_generation(world.runtime, generation_id)
    assert world.status(request_id)["state"] == "done"


def test_another_accounts_request_cannot_be_read_or_cancelled(world: World) -> None:
    request_id = world.ask().id
    with pytest.raises(RequestNotFound):
        world.read(request_id, api_key=world.owner_key, trusted_front=False)
    with pytest.raises(RequestNotFound):
        world.cancel(request_id, api_key=None, trusted_front=False)
    assert world.status(request_id)["state"] == "queued"


def test_a_front_may_read_every_request(world: World) -> None:
    request_id = world.ask().id
    assert world.read(request_id, api_key=None, trusted_front=True)["state"] == "queued"


def test_a_released_job_goes_back_without_a_fault(world: World) -> None:
    request_id, generation_id = world.leased()
    assert world.release(generation_id) is True
    assert world.release(generation_id) is False
    assert world.status(request_id)["restarted"] == 0
    assert world.pop().id is not None
