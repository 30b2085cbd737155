"""Filters screen all that is submitted, and rewrite prompt and messages alike."""

from typing import Any

import pytest

from app.domain.contract import ChatRequest
from app.domain.errors import CorruptPrompt
from app.domain.flattening import flatten
from app.domain.moderation import Filter, FilterKind, Moderation
from app.domain.text_request import parse_text_request

BLOCK = Filter(1, FilterKind.BLOCK, r"forbidd\w+")
REPLACE = Filter(2, FilterKind.REPLACE, r"\brude\b", "kind")
ERASE = Filter(3, FilterKind.REPLACE, r"\w+", "")
TOOL = {
    "type": "function",
    "function": {
        "name": "rude",
        "description": "A rude tool.",
        "parameters": {"type": "object", "properties": {"rude": {"type": "string", "description": "rude?"}}},
    },
}
CALL = {"id": "c", "type": "function", "function": {"name": "rude", "arguments": '{"rude":"so rude"}'}}
ASKED = {"role": "user", "content": "hi"}
CALLED = [
    ASKED,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "x"},
]

PLACES = [
    {"messages": [{"role": "user", "content": "FORBIDDEN"}]},
    {"messages": [{"role": "system", "content": "forbidden"}, ASKED]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "forbidden"}]}]},
    {"messages": [{"role": "user", "name": "forbidden", "content": "hi"}]},
    {"messages": [CALLED[0], CALLED[1], {"role": "tool", "tool_call_id": "c", "content": "forbidden"}]},
    {"messages": [ASKED, {"role": "assistant", "content": "forbidden"}, ASKED]},
    {"tools": [TOOL | {"function": {"name": "forbidden"}}]},
    {"stop": ["forbidden"]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "for"}, {"type": "text", "text": "bidden"}]}]},
    {
        "messages": [
            ASKED,
            {
                "role": "assistant",
                "tool_calls": [CALL | {"function": {"name": "f", "arguments": '{"a":["forbidd\\u0065n"]}'}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ]
    },
    {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "description": "forbidden"}}},
]


def stored(request: ChatRequest) -> Any:
    """The request as JSON."""
    return request.stored()


@pytest.mark.parametrize("members", PLACES, ids=str)
def test_a_block_filter_refuses_text_wherever_it_stands(chat: Any, members: dict[str, Any]) -> None:
    with pytest.raises(CorruptPrompt, match="filter 1") as refused:
        Moderation([BLOCK]).screened(chat(**members))
    assert refused.value.metadata == {"filter": 1}
    assert "forbidd" not in refused.value.message


def test_what_no_filter_matches_passes_unchanged(chat: Any) -> None:
    request = chat(messages=CALLED, tools=[TOOL])
    assert Moderation().screened(request) == request
    assert Moderation([BLOCK, Filter(2, FilterKind.REPLACE, "absent", "x")]).screened(request) == request


def test_a_replacement_rewrites_messages_so_that_the_prompt_made_of_them_says_the_same(chat: Any) -> None:
    parts = [{"type": "text", "text": "so Rude"}, {"type": "image_url", "image_url": {"url": "https://host/rude.png"}}]
    messages = [{"role": "system", "content": "rude"}, {"role": "user", "content": parts}]
    screened = stored(Moderation([REPLACE]).screened(chat(messages=messages)))
    assert flatten(screened["messages"]) == "system: kind\nuser: so kind"
    assert screened["messages"][1]["content"][1] == parts[1]


def test_a_replacement_keeps_calls_callable(chat: Any) -> None:
    screened = stored(Moderation([REPLACE]).screened(chat(messages=CALLED, tools=[TOOL])))
    assert screened["messages"][1]["tool_calls"] == [
        CALL | {"function": {"name": "rude", "arguments": '{"rude":"so kind"}'}}
    ]
    function = screened["tools"][0]["function"]
    assert (function["name"], function["description"]) == ("rude", "A kind tool.")
    assert function["parameters"]["properties"] == {"rude": {"type": "string", "description": "kind?"}}


@pytest.mark.parametrize(("arguments", "rewritten"), [("rude {", "kind {"), ('{ "a": 1 }', '{ "a": 1 }')])
def test_arguments_that_are_no_json_are_rewritten_as_text_and_untouched_ones_stay_as_they_came(
    chat: Any, arguments: str, rewritten: str
) -> None:
    call = CALL | {"function": {"name": "f", "arguments": arguments}}
    request = chat(messages=[ASKED, {"role": "assistant", "tool_calls": [call]}, CALLED[2]])
    kept = stored(Moderation([REPLACE]).screened(request))["messages"][1]["tool_calls"][0]
    assert kept["function"]["arguments"] == rewritten


def test_replacements_that_leave_nothing_refuse(chat: Any) -> None:
    with pytest.raises(CorruptPrompt, match="nothing"):
        Moderation([ERASE]).screened(chat())


@pytest.mark.parametrize(
    "body", [{"prompt": "a Forbidden word"}, {"prompt": "a", "params": {"stop_sequence": ["forbidden"]}}]
)
def test_a_text_request_is_refused_by_the_same_filters(body: Any) -> None:
    with pytest.raises(CorruptPrompt, match="filter 1"):
        Moderation([BLOCK]).screened_text(parse_text_request(body))


def test_a_text_prompt_is_rewritten_by_the_same_filters() -> None:
    assert Moderation([REPLACE]).screened_text(parse_text_request({"prompt": "a rude word"})).prompt == "a kind word"


def test_a_text_prompt_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(CorruptPrompt, match="nothing"):
        Moderation([ERASE]).screened_text(parse_text_request({"prompt": "hello"}))


def test_the_filters_that_match_are_told() -> None:
    assert Moderation([REPLACE, BLOCK]).matching("rude and forbidden") == [BLOCK, REPLACE]
    assert Moderation([REPLACE, BLOCK]).matching("good") == []
