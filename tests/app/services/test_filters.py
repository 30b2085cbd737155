"""Filters as operators write them, and what they do to a submit."""

from typing import Any

import pytest

from app.domain.errors import BadRequest, CorruptPrompt, FilterNotFound
from app.domain.moderation import FilterKind
from app.services.filters import Filters, NewFilter, add_filter, list_filters, load_filters, remove_filter
from tests.app.services.conftest import World


def add(world: World, new: NewFilter) -> int:
    with world.runtime.database.transaction() as transaction:
        return add_filter(transaction, new)


def says(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def test_a_blocked_conversation_is_refused_with_nothing_stored(world: World) -> None:
    add(world, NewFilter(FilterKind.BLOCK, "forbidden"))
    with pytest.raises(CorruptPrompt):
        world.ask("an-operation-key-of-22-chars", **says("Something FORBIDDEN."))
    assert world.execute("SELECT 1 FROM request_bodies") == []
    assert world.execute("SELECT 1 FROM operation_keys") == []


def test_a_replacement_is_mirrored_onto_prompt_and_messages(world: World) -> None:
    add(world, NewFilter(FilterKind.REPLACE, "rude", "kind"))
    world.ask(**says("A rude word."))
    assert world.execute(
        "SELECT prompt, submitted_prompt, contract -> 'messages' -> 0 ->> 'content' FROM request_bodies"
    ) == [("user: A kind word.", "user: A kind word.", "A kind word.")]
    job = world.pop()
    assert job.payload is not None
    assert job.payload["messages"] == [{"role": "user", "content": "A kind word."}]


def test_what_was_accepted_before_a_filter_came_is_answered_again(world: World) -> None:
    first = world.ask("an-operation-key-of-22-chars", **says("Something forbidden."))
    add(world, NewFilter(FilterKind.BLOCK, "forbidden"))
    world.submit._filters = Filters()
    assert world.ask("an-operation-key-of-22-chars", **says("Something forbidden.")).id == first.id


def test_screening_comes_before_the_look_for_a_worker_and_before_turns_fall(world: World) -> None:
    add(world, NewFilter(FilterKind.BLOCK, "forbidden"))
    with pytest.raises(CorruptPrompt):
        world.ask(model="nobody-serves-this", **says("forbidden"))
    long = [
        {"role": "user", "content": "forbidden " * 3000},
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": "hello"},
    ]
    with pytest.raises(CorruptPrompt):
        world.ask(messages=long, horde={"context_fit": "truncate_oldest"})


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (NewFilter(FilterKind.BLOCK, "("), "pattern: missing"),
        (NewFilter(FilterKind.BLOCK, "(?=a)b"), "pattern: invalid perl operator"),
        (NewFilter(FilterKind.BLOCK, "x*"), "pattern: matches an empty text"),
        (NewFilter(FilterKind.REPLACE, "x"), "replacement:"),
        (NewFilter(FilterKind.BLOCK, "x", "y"), "replacement:"),
        (NewFilter(FilterKind.BLOCK, "x", description="d" * 256), "description:"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_refused(world: World, new: NewFilter, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        add(world, new)
    assert refused.value.message.startswith(message)


def test_filters_are_listed_and_removed(world: World) -> None:
    kept, gone = add(world, NewFilter(FilterKind.REPLACE, "a", "", "why")), add(world, NewFilter(FilterKind.BLOCK, "b"))
    with world.runtime.database.transaction() as transaction:
        remove_filter(transaction, gone)
        assert [each.id for each in load_filters(transaction)] == [kept]
        assert [(row["pattern"], row["replacement"], row["description"]) for row in list_filters(transaction)] == [
            ("a", "", "why")
        ]
        with pytest.raises(FilterNotFound):
            remove_filter(transaction, gone)
