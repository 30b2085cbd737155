"""How many SQL statements the hot routes take: more than these would be a step back."""

import time
from collections.abc import Callable

import pytest

from app.adapters.database import STATEMENTS
from app.services.settle import settle_batch
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World


def count(call: Callable[[], object]) -> int:
    """Statements that a call sends."""
    before = STATEMENTS._value.get()
    call()
    return int(STATEMENTS._value.get() - before)


@pytest.fixture
def warm(world: World) -> World:
    """A world whose process knows its classes and has just looked who is online."""
    request_id, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    settle_batch(world.runtime)
    world.status(request_id)
    for _ in range(2):
        world.cancel(world.ask(max_tokens=64).id, api_key=world.requester_key, trusted_front=False)
    world.online._taken_at = time.monotonic() + 3600
    return world


def test_an_empty_pop_takes_one_statement(warm: World) -> None:
    assert count(warm.pop) == 1


def test_a_submit_takes_two_statements(warm: World) -> None:
    assert count(lambda: warm.ask(max_tokens=64)) == 2


def test_a_submit_that_may_need_kudos_held_looks_at_the_queue_too(warm: World) -> None:
    assert count(lambda: warm.ask(max_tokens=512)) == 3


def test_a_submit_with_an_operation_key_takes_two_statements(warm: World) -> None:
    assert count(lambda: warm.ask("an-operation-key-of-22-chars", max_tokens=64)) == 2


def test_a_pop_with_a_job_takes_two_statements(warm: World) -> None:
    warm.ask()
    assert count(warm.pop) == 2


def test_a_status_read_takes_one_statement_for_the_front(warm: World) -> None:
    request_id = warm.ask().id
    assert count(lambda: warm.read(request_id, api_key=None, trusted_front=True)) == 1


def test_a_reply_takes_one_statement_and_its_verification_two(warm: World) -> None:
    _, generation_id = warm.leased()
    assert count(lambda: warm.deliver(generation_id)) == 1
    assert count(lambda: verify_generation(warm.runtime, generation_id)) == 2


def test_a_batch_of_settlements_takes_one_statement(warm: World) -> None:
    for _ in range(5):
        _, generation_id = warm.leased()
        warm.deliver(generation_id)
        verify_generation(warm.runtime, generation_id)
    assert count(lambda: settle_batch(warm.runtime)) == 1
