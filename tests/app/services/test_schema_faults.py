"""Replies that a client's schema decides about: judged apart, and what happens when that never ends."""

from typing import Any
from uuid import UUID

import pytest
from redis import Redis

from app.services.schema_faults import fault_for_schema
from app.services.settle import settle_batch
from app.services.sweep import sweep
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
ASKED: dict[str, Any] = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}
}
ENFORCES: dict[str, Any] = {"chat_features": ["prompt_overflow_refused", "json_schema", "json_schema_enforced"]}
REPLY = {"message": {"content": '{"a":1}'}, "finish_reason": "stop"}


def delivered(world: World) -> tuple[UUID, UUID]:
    """A request with a strict schema and its reply, not verified yet."""
    request_id = world.ask(**ASKED).id
    generation_id = world.pop(**ENFORCES).id
    assert generation_id is not None
    world.deliver(generation_id, REPLY)
    return request_id, generation_id


def begun(world: World, generation_id: UUID, attempts: int) -> None:
    """A generation whose verification was begun and never ended, and is due again."""
    world.execute(
        "UPDATE generations SET attempts = :attempts, next_dispatch_at = now() - interval '1 second' WHERE id = :id",
        attempts=attempts,
        id=generation_id,
    )


def test_a_reply_to_a_strict_schema_goes_to_the_queue_of_its_own(world: World, redis: Redis) -> None:
    delivered(world)
    assert (redis.llen("schema"), redis.llen("verdict")) == (1, 0)


def test_the_sweep_sends_it_there_again(world: World, redis: Redis) -> None:
    _, generation_id = delivered(world)
    redis.delete("schema")
    begun(world, generation_id, 2)
    sweep(world.runtime)
    assert (redis.llen("schema"), redis.llen("verdict")) == (1, 0)
    assert world.state_of("generations", generation_id) == "submitted"


def test_a_schema_that_keeps_killing_its_verifier_faults_its_request(world: World) -> None:
    request_id, generation_id = delivered(world)
    begun(world, generation_id, 3)
    sweep(world.runtime)
    status = world.status(request_id)
    assert (status["state"], status["fault"]["rc"]) == ("faulted", "SchemaTooCostly")
    assert (status["restarted"], status["generations"], status["kudos"]) == (0, [], 0)


def test_its_worker_is_paid_by_the_horde_once_and_nobody_is_charged(world: World) -> None:
    before = world.kudos(world.requester_id), world.kudos(world.owner_id)
    _, generation_id = delivered(world)
    assert fault_for_schema(world.runtime, generation_id) is True
    assert fault_for_schema(world.runtime, generation_id) is False
    assert settle_batch(world.runtime) == 0
    asked, earned = world.kudos(world.requester_id), world.kudos(world.owner_id)
    assert asked == before[0]
    paid = sum(earned) - sum(before[1])
    assert paid > 0
    receipt = world.replies.deliver(world.owner_key, generation_id, world.reply(REPLY))
    assert receipt.reward == pytest.approx(paid / 1000, abs=0.01)
    world.require_sound(at_rest=True)


def test_a_verified_reply_is_not_faulted_for_its_schema(world: World) -> None:
    request_id, generation_id = delivered(world)
    verify_generation(world.runtime, generation_id)
    assert fault_for_schema(world.runtime, generation_id) is False
    assert world.status(request_id)["state"] == "done"


def test_a_reply_that_does_not_match_is_refused_as_elsewhere(world: World) -> None:
    request_id = world.ask(**ASKED).id
    generation_id = world.pop(**ENFORCES).id
    assert generation_id is not None
    world.deliver(generation_id, {"message": {"content": '{"a":"1"}'}, "finish_reason": "stop"})
    verify_generation(world.runtime, generation_id)
    assert world.state_of("generations", generation_id) == "refused"
    assert world.status(request_id)["restarted"] == 1
