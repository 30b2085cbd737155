"""OpenAI's shapes from a native status."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from front.completion import AnswerForm, Chunks, Reply, completion
from front.standing import Standing
from tests.front.process.scripted_native import generation_of, status_of

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def form(**changes: Any) -> AnswerForm:
    return AnswerForm(
        **{
            "created": 1,
            "model": "asked",
            "conformance": "strict",
            "prompt_tokens": 9,
            "include_reasoning": True,
            "include_usage": False,
            "opens_with_role": True,
            **changes,
        }
    )


def reply(asked: AnswerForm | None = None, **generation: Any) -> Reply:
    status = status_of("r", state="done", generations=[generation_of(**generation)])
    return Reply.read(Standing.read(status), "r", asked or form())


def message(**changes: Any) -> dict[str, Any]:
    return {"message": {**generation_of()["message"], **changes}}


@pytest.mark.parametrize(
    ("reported", "calls", "shown"),
    [
        ("stop", None, "stop"),
        ("length", None, "length"),
        ("stop", [CALL], "tool_calls"),
        ("tool_calls", [CALL], "tool_calls"),
        ("length", [CALL], "length"),
        ("content_filter", None, "content_filter"),
        ("eos", None, "stop"),
        (None, [CALL], "tool_calls"),
    ],
)
def test_the_finish_reason_is_the_same_word_in_both_modes(
    reported: str | None, calls: list[Any] | None, shown: str
) -> None:
    read = reply(finish_reason=reported, **message(tool_calls=calls))
    assert orjson.loads(completion(read, "r", form()))["choices"][0]["finish_reason"] == shown
    events = Chunks("r", form()).whole(read).decode().split("\n\n")
    assert orjson.loads(events[-3].removeprefix("data: "))["choices"][0]["finish_reason"] == shown


def test_empty_content_is_null_and_calls_are_left_out_where_there_are_none() -> None:
    shown = orjson.loads(completion(reply(**message(content="", tool_calls=[])), "r", form()))["choices"][0]["message"]
    assert shown == {"role": "assistant", "content": None, "refusal": None, "annotations": []}


def test_empty_arguments_become_an_empty_object() -> None:
    call = {**CALL, "function": {"name": "f", "arguments": ""}}
    assert reply(**message(tool_calls=[call])).tool_calls[0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("reported", "usage", "estimated"),
    [
        (
            {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 99},
            {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9},
            [],
        ),
        (
            {"prompt_tokens": 4},
            {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6},
            ["completion_tokens", "total_tokens"],
        ),
        (
            {"prompt_tokens": -1, "completion_tokens": True},
            {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
            ["prompt_tokens", "completion_tokens", "total_tokens"],
        ),
    ],
)
def test_missing_counts_are_estimated_and_named(
    reported: dict[str, Any], usage: dict[str, int], estimated: list[str]
) -> None:
    read = reply(usage=reported)
    assert read.usage == usage
    assert read.x_horde["estimated_usage"] == estimated


def test_the_estimate_counts_reasoning_and_calls_also_where_they_are_hidden() -> None:
    read = reply(
        form(include_reasoning=False),
        usage=None,
        **message(content="abcd", reasoning_content="efgh", tool_calls=[CALL]),
    )
    assert read.reasoning == ""
    assert read.usage["completion_tokens"] == 3


def test_reported_details_are_kept() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}}
    assert reply(usage=usage).usage["completion_tokens_details"] == {"reasoning_tokens": 1}


@given(st.text())
def test_any_text_arrives_whole_in_one_event(text: str) -> None:
    raw = Chunks("r", form()).whole(reply(**message(content=text)))
    lines = raw.decode().splitlines()
    assert raw.count(b"[DONE]\n\n") >= 1
    deltas = [
        orjson.loads(line.removeprefix("data: "))["choices"][0]["delta"]
        for line in lines
        if line and line != "data: [DONE]"
    ]
    assert "".join(delta.get("content", "") for delta in deltas) == text
