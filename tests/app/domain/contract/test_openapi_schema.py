"""The chat request's JSON Schema: it tells the same as the rules, and never refuses what they take."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.contract import Face, parse_chat_request
from app.domain.contract.drop_table import NO_OPS
from app.domain.contract.horde_options import KEYS
from app.domain.contract.openapi_schema import chat_request_schema
from app.domain.contract.readers import NATIVE_KEYS, READERS, UNSUPPORTED_KEYS
from app.domain.errors import ContractRefusal

BASE: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL_TURNS = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "http://x"}}],
    },
    {"role": "assistant", "content": None, "tool_calls": [CALL], "annotations": []},
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "42"}]},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "tool_calls": None},
    {"role": "developer", "content": "x", "name": "me"},
]
VALID: dict[Face, Draft202012Validator] = {face: Draft202012Validator(chat_request_schema(face)) for face in Face}

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["", "auto", "low", "x"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "function", "name", "include_usage", "workers", "nsfw"]), inner)
    ),
    max_leaves=5,
)
KNOWN: dict[str, list[Any]] = {
    "tools": [[TOOL], []],
    "tool_choice": ["none", "required", {"type": "function", "function": {"name": "f"}}],
    "parallel_tool_calls": [True, False],
    "stop": ["a", ["a", "b"], []],
    "response_format": [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": None}},
    ],
    "stream": [True],
    "stream_options": [{"include_usage": True}, {}],
    "metadata": [{"a": "b"}],
    "messages": [TOOL_TURNS[:3], TOOL_TURNS],
    "horde": [{"nsfw": True, "workers": ["w"], "max_kudos": 3.5, "context_fit": "truncate_oldest"}, {"workers": None}],
}
MEMBERS = st.sampled_from(sorted({*READERS, *UNSUPPORTED_KEYS, "models"}))


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    chosen = draw(st.sets(MEMBERS, max_size=5))
    own = {name: draw(st.sampled_from(KNOWN[name]) if name in KNOWN else VALUES) for name in sorted(chosen)}
    return BASE | own


@pytest.mark.parametrize("face", Face)
def test_the_schema_is_a_schema(face: Face) -> None:
    Draft202012Validator.check_schema(chat_request_schema(face))


@pytest.mark.parametrize("face", Face)
@settings(max_examples=300)
@given(body=bodies())
def test_what_the_rules_accept_the_schema_accepts(face: Face, body: dict[str, Any]) -> None:
    try:
        parse_chat_request(body, face)
    except ContractRefusal:
        return
    assert [error.message for error in VALID[face].iter_errors(body)] == []


@pytest.mark.parametrize("turns", [TOOL_TURNS[:3], TOOL_TURNS])
def test_a_tool_history_is_within_the_schema(turns: list[dict[str, Any]]) -> None:
    body = BASE | {"messages": turns, "tools": [TOOL]}
    parse_chat_request(body, Face.FRONT)
    assert VALID[Face.FRONT].is_valid(body)


@pytest.mark.parametrize(
    "broken",
    [
        {"messages": []},
        {"messages": "hi"},
        {"temperature": 2.5},
        {"max_tokens": 0},
        {"stop": ["a"] * 5},
        {"models": ["a"]},
        {"nobody": 1},
        {"horde": {"nobody": 1}},
        {"response_format": {"type": "xml"}},
        {"n": 2},
    ],
)
def test_what_the_schema_can_say_it_refuses_as_the_rules_do(broken: dict[str, Any]) -> None:
    with pytest.raises(ContractRefusal):
        parse_chat_request(BASE | broken, Face.FRONT)
    assert not VALID[Face.FRONT].is_valid(BASE | broken)


def test_each_face_shows_its_own_members() -> None:
    native: Any = chat_request_schema(Face.NATIVE)["properties"]
    front: Any = chat_request_schema(Face.FRONT)["properties"]
    assert set(native) == {*READERS, "model", "models"}
    assert set(front) == {*READERS, "model", "models", *(key for key, _ in NO_OPS)} - NATIVE_KEYS


def test_every_member_of_the_horde_object_is_shown() -> None:
    front: Any = chat_request_schema(Face.FRONT)["properties"]
    assert set(front["horde"]["properties"]) == KEYS
