"""Text requests that are submitted again under their operation key (native-api N1, decision 0081)."""

import pytest

from app.domain.errors import OperationKeyMismatch, TooManyPrompts
from app.domain.text_request import parse_text_request
from app.services.operation_keys import Repeatable
from app.services.submit_text import AcceptedText
from tests.app.services.conftest import World


def repeat(world: World, *, key: str = "a-key", prompt: str = "Once upon") -> AcceptedText:
    """Submit under an operation key."""
    return world.submit_text(
        world.requester_key, parse_text_request({"prompt": prompt}), Repeatable(key, "198.51.100.7")
    )


def test_the_same_operation_key_and_body_answer_the_first_text_request(world: World) -> None:
    first, again = repeat(world), repeat(world)
    assert (again.id, again.kudos, again.replayed) == (first.id, first.kudos, True)
    assert world.execute("SELECT count(*) FROM horde_requests") == [(1,)]
    assert repeat(world, key="another key").id != first.id


def test_the_same_operation_key_with_another_text_is_refused(world: World) -> None:
    repeat(world)
    with pytest.raises(OperationKeyMismatch):
        repeat(world, prompt="Twice upon")
    assert world.execute("SELECT count(*) FROM horde_requests") == [(1,)]


def test_a_repeated_text_is_answered_although_it_would_be_refused_by_now(world: World) -> None:
    first = repeat(world)
    world.execute("UPDATE users SET concurrency = 1 WHERE id = :id", id=world.requester_id)
    assert repeat(world).id == first.id
    with pytest.raises(TooManyPrompts):
        repeat(world, key="another key")
