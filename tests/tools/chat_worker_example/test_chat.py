"""The translations between the horde's shapes and the backend's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.chat_worker_example.chat import UnusableCompletion, call_of, reply_of

MESSAGES = [{"role": "user", "content": "hi"}]


def completion(message: dict[str, Any], finish: object = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **fields}


def tool_call(**fields: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **fields}


def test_a_call_holds_only_fields_of_openai_that_the_job_sets() -> None:
    payload = {
        "messages": MESSAGES,
        "temperature": 0,
        "top_p": 1,
        "seed": None,
        "stop": [],
        "tools": None,
        "tool_choice": None,
        "response_format": {"type": "text"},
        "reasoning_effort": None,
        "max_tokens": 5,
        "max_length": 5,
        "max_context_length": 100,
        "stream": False,
        "conformance": "strict",
    }
    assert call_of(payload, "m") == {
        "model": "m",
        "stream": False,
        "messages": MESSAGES,
        "temperature": 0,
        "top_p": 1,
        "max_tokens": 5,
    }


def test_tools_schema_and_reasoning_effort_are_passed_on() -> None:
    payload = {
        "messages": MESSAGES,
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "response_format": {"type": "json_object"},
        "reasoning_effort": "low",
        "stop": ["x"],
    }
    assert call_of(payload, "m") == {"model": "m", "stream": False, **payload}


def test_tool_fields_are_left_out_without_tools() -> None:
    assert set(call_of({"messages": MESSAGES, "tool_choice": "auto", "parallel_tool_calls": True}, "m")) == {
        "model",
        "stream",
        "messages",
    }


def test_a_streamed_job_is_a_streamed_call_that_reports_its_usage() -> None:
    call = call_of({"messages": MESSAGES, "stream": True}, "m")
    assert call == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": MESSAGES,
    }


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_both_names_of_reasoning_are_understood(key: str) -> None:
    reply = reply_of(completion({"content": "yes", key: "because"}))
    assert reply["message"] == {"content": "yes", "reasoning_content": "because", "tool_calls": None}


@pytest.mark.parametrize(
    ("reported", "with_calls", "told"),
    [
        ("stop", False, "stop"),
        ("length", False, "length"),
        ("length", True, "length"),
        ("stop", True, "tool_calls"),
        ("function_call", True, "tool_calls"),
        ("eos", False, "stop"),
        (None, False, "stop"),
    ],
)
def test_finish_reasons_are_told_in_openais_words(reported: object, with_calls: bool, told: str) -> None:
    message = {"content": None, "tool_calls": [tool_call()] if with_calls else None}
    assert reply_of(completion(message, reported))["finish_reason"] == told


def test_a_tool_call_without_an_id_gets_one_of_its_own() -> None:
    calls = reply_of(completion({"tool_calls": [tool_call(id=None), tool_call(id="")]}))["message"]["tool_calls"]
    assert len({call["id"] for call in calls}) == 2
    assert all(call["id"].startswith("call_") for call in calls)


def test_calls_that_share_an_id_get_ids_of_their_own() -> None:
    calls = reply_of(completion({"tool_calls": [tool_call(), tool_call(), tool_call()]}))["message"]["tool_calls"]
    assert calls[0]["id"] == "call_1"
    assert len({call["id"] for call in calls}) == 3


@pytest.mark.parametrize(
    ("given_arguments", "told"), [({"a": "é"}, '{"a": "é"}'), ("", "{}"), (None, "{}"), ('{"a":1}', '{"a":1}')]
)
def test_arguments_are_told_as_json_text(given_arguments: object, told: str) -> None:
    function = {"name": "f", "arguments": given_arguments}
    [call] = reply_of(completion({"tool_calls": [tool_call(function=function)]}))["message"]["tool_calls"]
    assert call["function"]["arguments"] == told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", None),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ("\ud83d\ude00", "😀"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_content_is_told_as_whole_characters_or_null(content: object, told: str | None) -> None:
    assert reply_of(completion({"content": content}))["message"]["content"] == told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "content",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "id",
                    "usage",
                    "reasoning",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON, JSON)
def test_whatever_a_backend_answers_is_a_reply_or_unusable(message: object, usage: object) -> None:
    try:
        reply = reply_of({"choices": [{"message": message}], "usage": usage})
    except UnusableCompletion:
        return
    assert isinstance(reply["message"]["content"], str | None)


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": "7"}, None),
        ({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}, {"prompt_tokens": 7, "completion_tokens": 2}),
        (
            {"completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 0}},
            {"completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}},
        ),
    ],
)
def test_usage_is_told_as_reported(usage: object, told: object) -> None:
    assert reply_of(completion({"content": "x"}, usage=usage))["usage"] == told


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{"finish_reason": "stop"}]},
        completion({"content": 3}),
        completion({"tool_calls": 3}),
        completion({"tool_calls": [{}]}),
        completion({"tool_calls": [{"function": {"arguments": "{}"}}]}),
    ],
)
def test_an_answer_that_is_no_completion_is_unusable(answer: object) -> None:
    with pytest.raises(UnusableCompletion):
        reply_of(answer)
