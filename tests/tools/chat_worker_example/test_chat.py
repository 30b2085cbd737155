"""The translations between the horde's shapes and the backend's."""

from typing import Any

import pytest

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
        "stream": True,
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
        completion({"tool_calls": 3}),
        completion({"tool_calls": [{}]}),
        completion({"tool_calls": [{"function": {"arguments": "{}"}}]}),
    ],
)
def test_an_answer_that_is_no_completion_is_unusable(answer: object) -> None:
    with pytest.raises(UnusableCompletion):
        reply_of(answer)
