"""Replies of workers: read, judged in both modes, and kept in the form that clients get."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.contract import ChatRequest
from app.domain.errors import ChatReplyRefused
from app.domain.verification import Reply, parse_reply, verify

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
NAMED = {"type": "function", "function": {"name": "f"}}
BEST_EFFORT = {"conformance": "best_effort"}
JSON_OBJECT = {"type": "json_object"}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}

Chat = Callable[..., ChatRequest]


def call(name: str = "f", arguments: object = "{}", call_id: str = "c") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def reply(content: str | None = None, *calls: dict[str, Any], **members: Any) -> Reply:
    return Reply(**{"content": content, "tool_calls": list(calls), "finish_reason": "stop"} | members)


def schema(*, strict: bool = True, **changed: object) -> dict[str, Any]:
    body = {"name": "n", "schema": SCHEMA | changed, "strict": strict}
    return {"type": "json_schema", "json_schema": body}


def refusal(request: ChatRequest, given_reply: Reply, max_length: int = 1000) -> tuple[str, str | None]:
    with pytest.raises(ChatReplyRefused) as caught:
        verify(request, given_reply, max_length=max_length)
    return caught.value.message, caught.value.param


FOREIGN = "The reply calls a function that is not among the client's tools (message.tool_calls[0])."
BOTH_MODES: list[tuple[dict[str, Any], Reply, str, str]] = [
    ({}, reply("", call()), FOREIGN, "message.tool_calls[0]"),
    ({"tools": TOOLS}, reply("", call("h")), FOREIGN, "message.tool_calls[0]"),
    (
        {"tools": TOOLS},
        reply(None, call("f"), call("g")),
        "Two tool calls share an id (message.tool_calls[1].id).",
        "message.tool_calls[1].id",
    ),
    (
        {"tools": TOOLS},
        reply(None, call(arguments="{")),
        "The arguments of a tool call are not JSON (message.tool_calls[0].function.arguments).",
        "message.tool_calls[0].function.arguments",
    ),
    (
        {"tools": TOOLS},
        reply(None, call(arguments="[1]")),
        "The arguments of a tool call are not a JSON object (message.tool_calls[0].function.arguments).",
        "message.tool_calls[0].function.arguments",
    ),
    (
        {"tools": TOOLS},
        reply(None, call(arguments='{"a":NaN}')),
        "The arguments of a tool call are not JSON (message.tool_calls[0].function.arguments).",
        "message.tool_calls[0].function.arguments",
    ),
]


@pytest.mark.parametrize("horde", [{}, BEST_EFFORT], ids=["strict", "best_effort"])
@pytest.mark.parametrize(("members", "bad", "message", "param"), BOTH_MODES, ids=range(len(BOTH_MODES)))
def test_a_call_that_no_client_can_dispatch_is_refused_in_both_modes(
    chat: Chat, members: dict[str, Any], bad: Reply, message: str, param: str, horde: dict[str, Any]
) -> None:
    assert refusal(chat(**members, horde=horde), bad) == (message, param)


CALLS_PATH = "message.tool_calls"
NO_CALL = ("The reply calls no tool although tool_choice forces one.", CALLS_PATH)
OTHER_CALL = ("The reply calls another function than 'f', which tool_choice forces.", CALLS_PATH)
NOT_JSON = ("The content is not JSON, which response_format asks for.", "message.content")
NOT_AN_OBJECT = ("The content is not a JSON object, which response_format asks for.", "message.content")


def mismatch(where: str, keyword: str) -> tuple[str, str]:
    return f"The content does not match the strict schema: {where} breaks '{keyword}'.", "message.content"


STRICT_ONLY: list[tuple[dict[str, Any], Reply, tuple[str, str]]] = [
    (
        {"tools": TOOLS, "tool_choice": "none"},
        reply("a", call()),
        ("The reply calls a tool although tool_choice is none.", CALLS_PATH),
    ),
    ({"tools": TOOLS, "tool_choice": "required"}, reply("a"), NO_CALL),
    ({"tools": TOOLS, "tool_choice": NAMED}, reply("a"), NO_CALL),
    ({"tools": TOOLS, "tool_choice": NAMED}, reply(None, call("g")), OTHER_CALL),
    ({"tools": TOOLS, "tool_choice": NAMED}, reply(None, call("f"), call("g", call_id="d")), OTHER_CALL),
    ({"response_format": JSON_OBJECT}, reply("hello"), NOT_JSON),
    ({"response_format": JSON_OBJECT}, reply(None), NOT_JSON),
    ({"response_format": JSON_OBJECT}, reply('{"a":1} and more'), NOT_JSON),
    ({"response_format": JSON_OBJECT}, reply("[1]"), NOT_AN_OBJECT),
    ({"response_format": schema(strict=False)}, reply("{"), NOT_JSON),
    ({"response_format": schema()}, reply("{"), NOT_JSON),
    ({"response_format": schema()}, reply("{}"), mismatch("$", "required")),
    ({"response_format": schema()}, reply('{"a":"x"}'), mismatch("$.a", "type")),
    ({"response_format": schema()}, reply('{"a":1,"b":2}'), mismatch("$", "additionalProperties")),
    ({"response_format": schema(), "tools": TOOLS}, reply("{}"), mismatch("$", "required")),
]


@pytest.mark.parametrize(("members", "bad", "expected"), STRICT_ONLY, ids=range(len(STRICT_ONLY)))
def test_a_reply_beside_the_contract_is_refused_under_strict(
    chat: Chat, members: dict[str, Any], bad: Reply, expected: tuple[str, str]
) -> None:
    assert refusal(chat(**members), bad) == expected


@pytest.mark.parametrize(("members", "bad", "expected"), STRICT_ONLY, ids=range(len(STRICT_ONLY)))
def test_the_same_reply_is_kept_under_best_effort(
    chat: Chat, members: dict[str, Any], bad: Reply, expected: tuple[str, str]
) -> None:
    kept = verify(chat(**members, horde=BEST_EFFORT), bad, max_length=1000)
    assert (kept.content, kept.tool_calls) == (bad.content, bad.tool_calls)


GOOD: list[tuple[dict[str, Any], Reply]] = [
    ({}, reply("hi")),
    ({}, reply(None)),
    ({}, reply(None, reasoning_content="thought")),
    ({"tools": TOOLS}, reply("no need")),
    ({"tools": TOOLS}, reply("both", call("f"), call("g", '{"a":[1]}', "d"))),
    ({"tools": TOOLS, "tool_choice": "none"}, reply("a")),
    ({"tools": TOOLS, "tool_choice": "required"}, reply(None, call("g"))),
    ({"tools": TOOLS, "tool_choice": NAMED}, reply(None, call("f"), call("f", call_id="d"))),
    ({"response_format": JSON_OBJECT}, reply(' {"a":1}\n')),
    ({"response_format": schema(strict=False)}, reply("[]")),
    ({"response_format": schema()}, reply('{"a":1}')),
    ({"response_format": JSON_OBJECT, "tools": TOOLS}, reply("let me look", call())),
]


@pytest.mark.parametrize(("members", "good"), GOOD, ids=range(len(GOOD)))
def test_a_reply_that_keeps_the_contract_is_kept(chat: Chat, members: dict[str, Any], good: Reply) -> None:
    kept = verify(chat(**members), good, max_length=1000)
    assert (kept.content, kept.reasoning_content, kept.tool_calls) == (
        good.content,
        good.reasoning_content,
        good.tool_calls,
    )


def test_one_call_is_kept_where_the_client_wants_no_parallel_calls(chat: Chat) -> None:
    both = reply(None, call("f"), call("g", call_id="d"))
    assert verify(chat(tools=TOOLS, parallel_tool_calls=False), both, max_length=9).tool_calls == [call("f")]


def test_a_second_call_is_not_judged_when_it_is_not_kept(chat: Chat) -> None:
    bad_second = reply(None, call("f"), call("h"))
    assert verify(chat(tools=TOOLS, parallel_tool_calls=False), bad_second, max_length=9).tool_calls == [call("f")]


def test_best_effort_keeps_parallel_calls(chat: Chat) -> None:
    both = reply(None, call("f"), call("g", call_id="d"))
    request = chat(tools=TOOLS, parallel_tool_calls=False, horde=BEST_EFFORT)
    assert len(verify(request, both, max_length=9).tool_calls) == 2


CUT_OFF: list[tuple[dict[str, Any], Reply]] = [
    ({"response_format": JSON_OBJECT}, reply('{"a":"' + "x" * 3600)),
    ({"response_format": schema()}, reply('{"a":', usage={"completion_tokens": 900})),
    ({"response_format": JSON_OBJECT}, reply(None, reasoning_content="x" * 3600)),
    ({"tools": TOOLS, "tool_choice": "required"}, reply(None, reasoning_content="x" * 3600)),
    ({"tools": TOOLS, "tool_choice": NAMED}, reply(None, usage={"completion_tokens": 1000})),
    ({"tools": TOOLS}, reply(None, call(arguments='{"a":"' + "x" * 3600))),
]


@pytest.mark.parametrize(("members", "cut"), CUT_OFF, ids=range(len(CUT_OFF)))
def test_a_reply_whose_budget_was_spent_may_be_incomplete(chat: Chat, members: dict[str, Any], cut: Reply) -> None:
    request = chat(**members)
    at_length = Reply.from_stored(cut.stored() | {"finish_reason": "length"})
    assert verify(request, at_length, max_length=1000) == at_length
    refusal(request, cut)


@pytest.mark.parametrize(("members", "cut"), CUT_OFF, ids=range(len(CUT_OFF)))
def test_a_reply_that_stops_before_nine_tenths_of_its_budget_must_be_complete(
    chat: Chat, members: dict[str, Any], cut: Reply
) -> None:
    at_length = Reply.from_stored(cut.stored() | {"finish_reason": "length"})
    refusal(chat(**members), at_length, max_length=1200)


@pytest.mark.parametrize(
    ("members", "bad"),
    [
        ({"response_format": JSON_OBJECT}, reply("[1]", usage={"completion_tokens": 1000}, finish_reason="length")),
        ({"response_format": schema()}, reply("{}", usage={"completion_tokens": 1000}, finish_reason="length")),
        ({"tools": TOOLS}, reply(None, call("h"), usage={"completion_tokens": 1000}, finish_reason="length")),
        (
            {"tools": TOOLS, "tool_choice": "none"},
            reply(None, call(), usage={"completion_tokens": 1000}, finish_reason="length"),
        ),
    ],
    ids=range(4),
)
def test_a_spent_budget_excuses_only_what_is_incomplete(chat: Chat, members: dict[str, Any], bad: Reply) -> None:
    refusal(chat(**members), bad)


@pytest.mark.parametrize(
    ("given_reason", "calls", "kept"),
    [
        ("stop", [], "stop"),
        ("tool_calls", [], "stop"),
        ("stop", [call()], "tool_calls"),
        ("tool_calls", [call()], "tool_calls"),
        ("length", [call()], "length"),
        ("length", [], "length"),
        ("content_filter", [], "content_filter"),
    ],
)
def test_the_finish_reason_follows_from_the_calls_unless_the_reply_was_cut(
    chat: Chat, given_reason: str, calls: list[dict[str, Any]], kept: str
) -> None:
    given_reply = reply("a", *calls, finish_reason=given_reason)
    assert verify(chat(tools=TOOLS), given_reply, max_length=9).finish_reason == kept


def submitted(message: object, **members: Any) -> dict[str, Any]:
    return {"message": message, "finish_reason": "stop"} | members


@pytest.mark.parametrize(
    ("body", "parsed"),
    [
        (submitted({"content": "hi"}), reply("hi")),
        (submitted({"role": "assistant", "content": "hi", "zzz": 1}), reply("hi")),
        (submitted({"content": ""}), reply(None)),
        (submitted({"content": None, "reasoning_content": ""}), reply(None)),
        (submitted({}), reply(None)),
        (submitted({"content": "a", "reasoning_content": "b"}), reply("a", reasoning_content="b")),
        (submitted({"content": "a\ud83db\x00"}), reply("a\ufffdb\ufffd")),
        (submitted({"tool_calls": None}), reply(None)),
        (
            submitted({"tool_calls": [{"id": "c", "function": {"name": "f"}, "index": 0}]}),
            reply(None, call()),
        ),
        (submitted({"tool_calls": [call(arguments=" ")]}), reply(None, call())),
        (
            submitted({"tool_calls": [call(arguments={"a": "é\ud83d"})]}),
            reply(None, call(arguments='{"a": "é\ufffd"}')),
        ),
        (
            submitted({"content": "a"}, usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
            reply("a", usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
        ),
        (
            submitted(
                {"content": "a"},
                usage={"completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1, "zzz": 1}},
            ),
            reply("a", usage={"completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}}),
        ),
        (submitted({"content": "a"}, usage=None), reply("a")),
        (submitted({"content": "a"}, usage={"prompt_tokens": -1, "completion_tokens": "2"}), reply("a")),
        (submitted({"content": "a"}, usage=[1]), reply("a")),
    ],
    ids=range(16),
)
def test_a_submitted_reply_is_read_into_its_stored_form(body: dict[str, Any], parsed: Reply) -> None:
    assert parse_reply(body) == parsed


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "'message' must be an object with the reply's content."),
        (submitted("hi"), "'message' must be an object with the reply's content."),
        (
            {"message": {"content": "a"}},
            "'finish_reason' must be one of stop, length, tool_calls, content_filter.",
        ),
        (
            submitted({"content": "a"}, finish_reason="eos"),
            "'finish_reason' must be one of stop, length, tool_calls, content_filter.",
        ),
        (submitted({"content": ["a"]}), "'message.content' must be a string or null."),
        (submitted({"reasoning_content": 5}), "'message.reasoning_content' must be a string or null."),
        (submitted({"tool_calls": {}}), "'message.tool_calls' must be a list."),
        (submitted({"tool_calls": ["f"]}), "'message.tool_calls[0]' must be an object with a 'function'."),
        (submitted({"tool_calls": [{"id": "c"}]}), "'message.tool_calls[0]' must be an object with a 'function'."),
        (
            submitted({"tool_calls": [call() | {"type": "custom"}]}),
            "'message.tool_calls[0].type' must be 'function'.",
        ),
        (
            submitted({"tool_calls": [call() | {"id": ""}]}),
            "'message.tool_calls[0].id' must be a string that is not empty.",
        ),
        (
            submitted({"tool_calls": [call(), call() | {"id": None}]}),
            "'message.tool_calls[1].id' must be a string that is not empty.",
        ),
        (
            submitted({"tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]}),
            "'message.tool_calls[0].function.name' must be a string that is not empty.",
        ),
        (
            submitted({"tool_calls": [call(arguments=[1])]}),
            "'message.tool_calls[0].function.arguments' must be the text of a JSON object.",
        ),
    ],
    ids=range(14),
)
def test_a_malformed_reply_is_refused(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ChatReplyRefused) as caught:
        parse_reply(body)
    assert caught.value.message == message
    assert caught.value.code == "ChatReplyRefused"


def test_content_reasoning_and_calls_count_as_characters() -> None:
    assert reply(None).characters == 0
    assert reply("abc", call("f", '{"a":1}'), reasoning_content="de").characters == 3 + 2 + 1 + 7


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "function", "name", "arguments", "content", "tool_calls"]), inner
        )
    ),
    max_leaves=12,
)


def outcome_of(body: dict[str, object]) -> Reply | ChatReplyRefused:
    try:
        return parse_reply(body)
    except ChatReplyRefused as refused:
        return refused


@given(JSON_VALUES, st.sampled_from(["stop", "length"]), JSON_VALUES)
def test_any_submit_is_a_storable_reply_or_a_refusal(message: object, finish_reason: str, usage: object) -> None:
    outcome = outcome_of({"message": message, "finish_reason": finish_reason, "usage": usage})
    if isinstance(outcome, Reply):
        assert Reply.from_stored(orjson.loads(orjson.dumps(outcome.stored()))) == outcome
    else:
        assert outcome.param is not None
