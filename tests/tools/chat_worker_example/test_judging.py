"""What a reply has to keep before it is sent."""

from typing import Any

import pytest

from tools.chat_worker_example.chat import UnusableCompletion
from tools.chat_worker_example.judging import judge

TOOLS = {"tools": [{"type": "function", "function": {"name": "f"}}]}


def reply(content: str | None = None, calls: list[tuple[str, str]] | None = None, **fields: Any) -> dict[str, Any]:
    made = [
        {"id": str(at), "function": {"name": name, "arguments": text}} for at, (name, text) in enumerate(calls or [])
    ]
    message = {"content": content, "reasoning_content": None, "tool_calls": made or None}
    return {"message": message, "finish_reason": "stop", "usage": None, **fields}


@pytest.mark.parametrize(
    ("given", "payload"),
    [
        (reply("short"), {"max_tokens": 1}),
        (reply("x" * (16 * 100 + 256)), {"max_tokens": 100}),
        (reply("no limit " * 1000), {}),
        (reply(calls=[("f", '{"a": 1}')]), TOOLS),
        (reply(calls=[("f", '{"a": ')], finish_reason="length"), TOOLS),
        (reply("cut", finish_reason="length"), TOOLS | {"tool_choice": "required"}),
        (reply('{"a": 1}'), {"response_format": {"type": "json_object"}}),
        (reply("[1]"), {"response_format": {"type": "json_schema"}}),
        (reply("null"), {"response_format": {"type": "json_schema"}}),
        (reply('{"a": ', finish_reason="length"), {"response_format": {"type": "json_object"}}),
        (reply("prose"), {"response_format": {"type": "text"}}),
        (reply(calls=[("f", "{}")]), TOOLS | {"response_format": {"type": "json_object"}}),
    ],
)
def test_a_right_reply_is_kept_as_it_is(given: dict[str, Any], payload: dict[str, Any]) -> None:
    assert judge(given, payload) == given


@pytest.mark.parametrize(
    ("given", "payload", "said"),
    [
        (reply("x" * (16 * 100 + 257)), {"max_tokens": 100}, "longer"),
        (reply(calls=[("g", "{}")]), TOOLS, "does not offer"),
        (reply(calls=[("f", "{}")]), {}, "does not offer"),
        (reply(calls=[("f", "[1]")]), TOOLS, "not a JSON object"),
        (reply(calls=[("f", "{")]), TOOLS, "not a JSON object"),
        (reply("no"), TOOLS | {"tool_choice": "required"}, "required"),
        (reply("prose"), {"response_format": {"type": "json_schema"}}, "JSON"),
        (reply("[1]"), {"response_format": {"type": "json_object"}}, "JSON"),
        (reply(None), {"response_format": {"type": "json_object"}}, "JSON"),
        (reply("[" * 10**5), {"response_format": {"type": "json_schema"}}, "JSON"),
        (reply("a b c", usage={"completion_tokens": 30}), {"max_tokens": 3}, "more tokens"),
    ],
)
def test_a_wrong_reply_is_unusable(given: dict[str, Any], payload: dict[str, Any], said: str) -> None:
    with pytest.raises(UnusableCompletion, match=said):
        judge(given, payload)


@pytest.mark.parametrize(
    ("content", "tokens", "kept"), [("hi", 64, True), ("hi", 65, True), ("hi", 66, False), ("hi", 10**9, False)]
)
def test_a_usage_that_cannot_be_true_is_left_out(content: str, tokens: int, kept: bool) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": tokens}
    assert judge(reply(content, usage=usage), {"max_tokens": 64})["usage"] == (usage if kept else None)
