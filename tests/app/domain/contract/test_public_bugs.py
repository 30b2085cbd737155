"""What other OpenAI-compatible servers were reported to get wrong about requests, by symptom."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.contract import ChatRequest, Face
from app.domain.flattening import flatten
from app.domain.narrowing import chat_payload

Json = dict[str, Any]
Parsed = Callable[..., ChatRequest]
Refused = Callable[..., tuple[str, str | None, str]]

USER = {"role": "user", "content": "hi"}
FUNCTION: Json = {"name": "f", "arguments": '{"a":1}'}
CALL: Json = {"id": "c", "type": "function", "function": FUNCTION}
ANSWER = {"role": "tool", "tool_call_id": "c", "content": "1"}


def payload(request: ChatRequest) -> Json:
    return chat_payload(request, max_length=9, max_context_length=99, declares_reasoning=False, stream=False)


@pytest.mark.parametrize("name", ["tool_choice", "parallel_tool_calls"])
@pytest.mark.parametrize("value", ["auto", "none", True, False])
def test_tool_fields_without_tools_are_refused_and_never_reach_a_worker(
    refused: Refused, name: str, value: object
) -> None:
    told = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
    assert refused(**{name: value}) == (told, name, "invalid_request")


@pytest.mark.parametrize("calls", [[], None])
def test_empty_tool_calls_in_the_history_are_no_calls(parsed: Parsed, calls: object) -> None:
    messages = [USER, {"role": "assistant", "content": "a", "tool_calls": calls}, USER]
    assert parsed(messages=messages).messages[1] == {"role": "assistant", "content": "a"}


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}, {"content": " "}, {"content": "x"}])
def test_a_call_may_stand_without_content(parsed: Parsed, content: Json) -> None:
    request = parsed(messages=[USER, {"role": "assistant", "tool_calls": [CALL], **content}, ANSWER, USER])
    assert request.messages[1] == {"role": "assistant", "content": content.get("content"), "tool_calls": [CALL]}


def test_an_empty_assistant_turn_without_calls_is_accepted(parsed: Parsed) -> None:
    messages = [USER, {"role": "assistant", "content": ""}, USER]
    assert parsed(messages=messages).messages == messages


def test_system_content_in_parts_keeps_every_text_in_order(parsed: Parsed) -> None:
    parts = [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    request = parsed(messages=[{"role": "system", "content": parts}, USER])
    assert request.messages[0]["content"] == parts
    assert flatten(request.messages) == "system: A\nsystem: B\nuser: hi"


def test_a_bare_string_among_content_parts_is_named(refused: Refused) -> None:
    message, param, _ = refused(messages=[{"role": "user", "content": ["a", {"type": "text", "text": "b"}]}])
    assert message == "Invalid type for 'messages[0].content[0]': expected an object, but got a string instead."
    assert param == "messages[0].content[0]"


def test_a_tool_answer_in_parts_keeps_its_text(parsed: Parsed) -> None:
    parts = [{"type": "text", "text": "42"}]
    request = parsed(messages=[USER, {"role": "assistant", "tool_calls": [CALL]}, ANSWER | {"content": parts}])
    assert request.messages[2] == {"role": "tool", "content": parts, "tool_call_id": "c"}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_replayed_reasoning_beside_content_and_calls_is_dropped(parsed: Parsed, name: str) -> None:
    turn = {"role": "assistant", "content": "x", "tool_calls": [CALL], name: "because"}
    assert parsed(messages=[USER, turn, ANSWER]).messages[1] == {
        "role": "assistant",
        "content": "x",
        "tool_calls": [CALL],
    }


@pytest.mark.parametrize("content", ["It is", [{"type": "text", "text": "It is"}]])
def test_a_last_turn_of_the_assistant_is_kept_in_both_forms(parsed: Parsed, content: object) -> None:
    prefill = {"role": "assistant", "content": content}
    assert payload(parsed(messages=[USER, prefill]))["messages"][-1] == prefill


def test_two_answers_to_one_call_are_refused_naming_both(refused: Refused) -> None:
    told = "Invalid parameter: Duplicate value for 'tool_call_id' of 'c', in messages[2] and messages[3]."
    messages = [USER, {"role": "assistant", "tool_calls": [CALL]}, ANSWER, ANSWER]
    assert refused(messages=messages) == (told, "messages.[3].tool_call_id", "invalid_request")


def test_one_call_id_in_two_turns_is_accepted_as_it_came(parsed: Parsed) -> None:
    turn = [{"role": "assistant", "tool_calls": [CALL]}, ANSWER]
    kept = parsed(messages=[USER, *turn, *turn]).messages
    assert [message["tool_call_id"] for message in kept if message["role"] == "tool"] == ["c", "c"]


def test_a_response_format_reaches_the_worker_and_is_required_of_it(parsed: Parsed) -> None:
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": False}}
    assert payload(parsed(response_format=asked))["response_format"] == asked
    assert payload(parsed(response_format={"type": "json_object"}))["response_format"] == {"type": "json_object"}


def test_a_schema_name_with_a_space_is_refused(refused: Refused) -> None:
    message, param, _ = refused(
        response_format={"type": "json_schema", "json_schema": {"name": "calendar event", "schema": {}}}
    )
    assert "does not match pattern" in message
    assert param == "response_format.json_schema.name"


@pytest.mark.parametrize("face", Face)
def test_null_means_absent_for_every_field(parsed: Parsed, face: Face) -> None:
    nulls = dict.fromkeys(
        (
            "max_tokens",
            "temperature",
            "stop",
            "n",
            "seed",
            "tools",
            "tool_choice",
            "response_format",
            "logprobs",
            "user",
        )
    )
    assert parsed(face=face, **nulls) == parsed(face=face)


@pytest.mark.parametrize("member", [{"logprobs": True}, {"logprobs": True, "top_logprobs": 0}, {"top_logprobs": 0}])
def test_log_probabilities_are_refused_by_name(refused: Refused, member: Json) -> None:
    _, param, code = refused(**member)
    assert (param, code) == (next(iter(member)), "UnsupportedChatParameter")


def test_an_empty_list_of_tools_is_none(parsed: Parsed) -> None:
    assert parsed(tools=[]) == parsed()


REPLAYS = [
    {"refusal": None, "annotations": [], "audio": None, "function_call": None, "tool_calls": None},
    {"parsed": {"a": 1}, "reasoning_content": "r", "provider_specific_fields": {}},
    {
        "annotations": None,
        "tool_calls": [CALL | {"index": 0, "function": FUNCTION | {"parsed_arguments": {"a": 1}}}],
    },
]


@pytest.mark.parametrize("extra", REPLAYS, ids=range(3))
def test_what_sdks_replay_of_a_reply_is_accepted(parsed: Parsed, extra: Json) -> None:
    answers = [ANSWER] if extra.get("tool_calls") else []
    turn = parsed(messages=[USER, {"role": "assistant", "content": "x", **extra}, *answers, USER]).messages[1]
    assert set(turn) <= {"role", "content", "tool_calls"}
    assert turn.get("tool_calls", [CALL]) == [CALL]
