"""Which submits are the same operation."""

from typing import Any

import pytest

from app.domain.contract import Face, parse_chat_request
from app.domain.fingerprint import fingerprint

MESSAGES = [{"role": "user", "content": "hi"}]


def test_the_order_of_models_and_of_keys_changes_nothing() -> None:
    first = {"models": ["a", "b"], "messages": MESSAGES, "metadata": {"x": "1", "y": "2"}, "seed": 1}
    second = {"seed": 1, "metadata": {"y": "2", "x": "1"}, "messages": MESSAGES, "models": ["b", "a"]}
    assert fingerprint(parse_chat_request(first, Face.NATIVE)) == fingerprint(parse_chat_request(second, Face.NATIVE))


@pytest.mark.parametrize(
    "members",
    [
        {"operation_key": "k"},
        {"dry_run": True},
        {"temperature": 1},
        {"tools": []},
        {"response_format": {"type": "text"}},
        {"reasoning_effort": "medium"},
        {"horde": {"conformance": "strict"}},
        {"stop": None},
    ],
    ids=str,
)
def test_what_does_not_change_the_operation_does_not_change_its_fingerprint(chat: Any, members: dict[str, Any]) -> None:
    assert fingerprint(chat(**members)) == fingerprint(chat())


@pytest.mark.parametrize(
    "members",
    [
        {"model": "n"},
        {"messages": [{"role": "user", "content": "hi!"}]},
        {"temperature": 0.9},
        {"max_tokens": 512},
        {"stream": True},
        {"user": "u"},
        {"metadata": {"a": "b"}},
        {"horde": {"max_kudos": 5}},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"stop": ["a", "b"]},
    ],
    ids=str,
)
def test_every_other_difference_changes_it(chat: Any, members: dict[str, Any]) -> None:
    assert fingerprint(chat(**members)) != fingerprint(chat())


def test_the_order_of_messages_matters(chat: Any) -> None:
    a, b = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}
    assert fingerprint(chat(messages=[a, b])) != fingerprint(chat(messages=[b, a]))
