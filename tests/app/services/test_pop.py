"""A worker's pop: who may, and which job it gets."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.domain.errors import AnonForbiddenWorker, InvalidApiKey, WorkerMaintenance, WrongCredentials
from tests.app.services.conftest import World


def test_a_pop_takes_the_request_out_of_the_queue(world: World) -> None:
    request_id, generation_id = world.leased()
    assert world.state_of("horde_requests", request_id) == "processing"
    assert world.state_of("generations", generation_id) == "leased"
    assert world.execute("SELECT 1 FROM queue_entries") == []


def test_the_job_carries_the_conversation_and_every_sampling_field(world: World) -> None:
    world.ask()
    payload = world.pop().payload
    assert payload is not None
    assert payload["messages"] == [{"role": "user", "content": "Say hello."}]
    assert {"temperature", "top_p", "presence_penalty", "frequency_penalty", "stop", "seed"} <= payload.keys()


def test_two_workers_never_get_one_request(world: World) -> None:
    for _ in range(10):
        world.ask()
    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(lambda number: world.pop(name=f"box-{number % 4}").id, range(20)))
    given = [job for job in jobs if job is not None]
    assert len(given) == len(set(given))
    while (left := world.pop().id) is not None:
        given.append(left)
    assert len(set(given)) == 10


def test_the_same_pop_key_gets_the_same_job_again(world: World) -> None:
    world.ask()
    world.ask()
    assert world.pop("key-1").id == world.pop("key-1").id
    assert world.pop("key-2").id not in {None, world.pop("key-1").id}


def test_a_pop_key_whose_job_has_ended_gets_no_other_job(world: World) -> None:
    world.ask()
    job = world.pop("key-1")
    assert job.id is not None
    world.replies.fault(world.owner_key, job.id, "backend_error")
    assert world.pop("key-1").id is None


@pytest.mark.parametrize(
    "changes",
    [
        {"model_id": "another"},
        {"chat_features": ["tools"]},
        {"max_length": 100},
        {"max_context_length": 100},
        {"chat_jobs": False},
        {"chat_limits": {"max_length": 511}},
    ],
)
def test_a_worker_that_does_not_cover_a_request_is_not_given_it(world: World, changes: dict[str, Any]) -> None:
    world.ask()
    assert world.pop(**changes).id is None
    assert world.pop().id is not None


def test_a_limit_inside_the_boundary_bucket_is_compared_exactly(world: World) -> None:
    world.ask(max_tokens=600)
    assert world.pop(max_length=599).id is None
    assert world.pop(max_length=600).id is not None


def test_too_many_tools_are_not_given_to_a_worker_with_a_smaller_limit(world: World) -> None:
    tools = [{"type": "function", "function": {"name": f"f{number}"}} for number in range(3)]
    world.ask(tools=tools)
    assert world.pop(chat_limits={"max_tools": 2}).id is None
    assert world.pop(chat_limits={"max_tools": 3}).id is not None


def test_a_worker_that_faulted_a_request_leaves_it_to_another_that_could_serve_it(world: World) -> None:
    world.pop(name="other")
    _, generation_id = world.leased()
    world.replies.fault(world.owner_key, generation_id, "backend_error")
    world.online._taken_at = float("-inf")
    assert world.pop().id is None
    assert world.pop(name="other").id is not None


def test_a_worker_that_faulted_a_request_gets_it_again_when_it_is_alone(world: World) -> None:
    _, generation_id = world.leased()
    world.replies.fault(world.owner_key, generation_id, "backend_error")
    assert world.pop().id is not None


def test_the_anonymous_account_runs_no_workers(world: World) -> None:
    world.owner_key = "0000000000"
    with pytest.raises(AnonForbiddenWorker):
        world.pop(name="new")


def test_a_name_belongs_to_the_account_that_used_it_first(world: World) -> None:
    world.owner_key = world.requester_key
    with pytest.raises(WrongCredentials):
        world.pop()


def test_an_unknown_key_is_refused(world: World) -> None:
    world.owner_key = "no-such-key"
    with pytest.raises(InvalidApiKey):
        world.pop()


def test_a_worker_in_maintenance_is_told_so(world: World) -> None:
    world.execute("UPDATE workers SET maintenance = true, maintenance_message = 'Back at noon.'")
    with pytest.raises(WorkerMaintenance, match="Back at noon"):
        world.pop()


def test_a_first_pop_from_four_threads_registers_one_worker(world: World) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: world.pop(name="newcomer"), range(4)))
    assert world.execute("SELECT count(*) FROM workers WHERE name = 'newcomer'") == [(1,)]


def test_what_a_worker_declares_anew_counts_at_once(world: World) -> None:
    world.pop(model_id="second", models=["second"])
    assert world.execute("SELECT declaration ->> 'model_id' FROM workers") == [("second",)]
    world.pop(model_id="m", models=["m"])
    assert world.execute("SELECT declaration ->> 'model_id' FROM workers") == [("m",)]
