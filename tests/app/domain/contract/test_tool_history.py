"""Every tool call is answered in its place, once."""

from typing import Any

import pytest

USER = {"role": "user", "content": "hi"}


def calls(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for call_id in ids
        ],
    }


def answer(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "1"}


NOT_A_RESPONSE = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
)


def unanswered(ids: str) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {ids}"
    )


@pytest.mark.parametrize(
    ("messages", "message", "param"),
    [
        ([USER, answer("a")], NOT_A_RESPONSE, "messages.[1].role"),
        ([answer("a")], NOT_A_RESPONSE, "messages.[0].role"),
        ([calls("a"), answer("a"), USER, answer("a")], NOT_A_RESPONSE, "messages.[3].role"),
        ([calls("a"), USER], unanswered("a"), "messages.[1].role"),
        ([calls("a", "b"), answer("a"), USER], unanswered("b"), "messages.[2].role"),
        ([calls("a", "b", "c"), answer("b")], unanswered("a, c"), "messages.[2].role"),
        ([USER, calls("a")], unanswered("a"), "messages.[2].role"),
        ([calls("a"), calls("b"), answer("b")], unanswered("a"), "messages.[1].role"),
        (
            [USER, calls("a", "a"), answer("a")],
            "Invalid parameter: Duplicate value for 'id' of 'a', in messages[1].tool_calls.",
            "messages[1].tool_calls[1].id",
        ),
        (
            [calls("a"), answer("z")],
            "Invalid parameter: 'tool_call_id' of 'z' not found in 'tool_calls' of previous message.",
            "messages.[1].tool_call_id",
        ),
        (
            [calls("a"), answer("a"), calls("b"), answer("a")],
            "Invalid parameter: 'tool_call_id' of 'a' not found in 'tool_calls' of previous message.",
            "messages.[3].tool_call_id",
        ),
        (
            [calls("a", "b"), answer("a"), answer("b"), answer("a")],
            "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[1] and messages[3].",
            "messages.[3].tool_call_id",
        ),
        (
            [calls("a"), {"role": "tool", "content": "1"}],
            "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
            "messages.[1].tool_call_id",
        ),
    ],
)
def test_a_broken_tool_history_is_refused(
    refused: Any, messages: list[dict[str, Any]], message: str, param: str
) -> None:
    assert refused(messages=messages) == (message, param, "invalid_request")


@pytest.mark.parametrize(
    "messages",
    [
        [calls("a"), answer("a")],
        [USER, calls("a", "b"), answer("b"), answer("a"), USER],
        [calls("a"), answer("a"), calls("a"), answer("a"), USER],
        [calls("a"), answer("a"), {"role": "assistant", "content": "done"}, USER],
    ],
)
def test_a_whole_tool_history_is_accepted(parsed: Any, messages: list[dict[str, Any]]) -> None:
    assert len(parsed(messages=messages).messages) == len(messages)


def test_a_call_id_longer_than_openais_is_refused_only_with_its_guards(parsed: Any, refused: Any) -> None:
    long = "c" * 41
    call = {"id": long, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]
    messages.append({"role": "tool", "tool_call_id": long, "content": "1"})
    assert parsed(messages=messages).messages[2]["tool_call_id"] == long
    message, param, code = refused(messages=messages, horde={"openai_guards": True})
    assert message.endswith("maximum length 40, but got a string with length 41 instead.")
    assert (param, code) == ("messages[1].tool_calls[0].id", "string_above_max_length")
