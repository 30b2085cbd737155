"""Properties of the whole request: storing, refusing anything else, and normalising once."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from app.domain.contract import ChatRequest, Face, parse_chat_request
from app.domain.contract.readers import READERS, UNSUPPORTED_KEYS
from app.domain.errors import ContractRefusal

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
IMAGE = {"type": "image_url", "image_url": {"url": "https://host/a.png", "detail": "high"}}

MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "developer"]), TEXT),
        st.builds(lambda text: {"role": "user", "content": [{"type": "text", "text": text}, IMAGE]}, TEXT),
        st.builds(lambda text: {"role": "assistant", "content": text, "reasoning_content": "r"}, st.none() | TEXT),
    ),
    min_size=1,
    max_size=4,
)
HISTORY = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "1"},
]
HORDE = st.fixed_dictionaries(
    {},
    optional={
        "conformance": st.sampled_from(["strict", "best_effort"]),
        "max_kudos": st.floats(0, 1e6) | st.integers(0, 10**6),
        "workers": st.lists(TEXT, max_size=5),
        "include_reasoning": st.booleans(),
        "context_fit": st.sampled_from(["refuse", "truncate_oldest"]),
        "max_context_length": st.integers(1, 2**31 - 1),
    },
)
BODIES = st.fixed_dictionaries(
    {"models": st.lists(TEXT.filter(bool), min_size=1, max_size=4, unique=True), "messages": MESSAGES},
    optional={
        "temperature": st.floats(0, 2) | st.integers(0, 2),
        "top_p": st.floats(0, 1),
        "presence_penalty": st.floats(-2, 2),
        "stop": TEXT | st.lists(TEXT, max_size=4),
        "seed": st.integers(-(2**63), 2**63 - 1),
        "max_tokens": st.integers(1, 2**31 - 1),
        "tools": st.just([TOOL]),
        "response_format": st.sampled_from(
            [
                {"type": "text"},
                {"type": "json_object"},
                {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "n",
                        "schema": {"type": "object", "additionalProperties": False},
                        "strict": True,
                    },
                },
            ]
        ),
        "reasoning_effort": st.sampled_from(["none", "medium", "max"]),
        "stream": st.booleans(),
        "user": TEXT,
        "metadata": st.dictionaries(TEXT, TEXT, max_size=3),
        "horde": HORDE,
        "operation_key": st.just("k"),
    },
)
TOOL_CHOICES = st.sampled_from(["none", "auto", "required", {"type": "function", "function": {"name": "f"}}])

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.sampled_from(["type", "function", "role"]), inner)
    ),
    max_leaves=10,
)


@st.composite
def good_requests(draw: st.DrawFn) -> ChatRequest:
    body: dict[str, Any] = draw(BODIES)
    if draw(st.booleans()):
        body["messages"] = [*body["messages"], *HISTORY]
    if "tools" in body:
        body["tool_choice"] = draw(TOOL_CHOICES)
        body["parallel_tool_calls"] = draw(st.booleans())
    return parse_chat_request(body, Face.NATIVE)


@given(good_requests())
def test_a_stored_request_comes_back_exactly(request: ChatRequest) -> None:
    stored = orjson.loads(orjson.dumps(request.stored()))
    again = ChatRequest.from_stored(stored)
    assert again.stored() == request.stored()
    assert {"operation_key", "dry_run"}.isdisjoint(stored)
    assert again == ChatRequest.from_stored(request.stored())


@given(good_requests())
def test_a_normalised_request_is_parsed_to_itself(request: ChatRequest) -> None:
    stored = request.stored()
    body = {key: value for key, value in stored.items() if key in READERS} | {"models": stored["models"]}
    body |= request.labels
    assert parse_chat_request(body, Face.NATIVE).stored() == stored


def outcome_of(body: dict[str, object], face: Face) -> ChatRequest | ContractRefusal:
    try:
        return parse_chat_request(body, face)
    except ContractRefusal as refusal:
        return refusal


@given(
    st.dictionaries(st.sampled_from([*READERS, *UNSUPPORTED_KEYS, "model", "models", "zzz"]), JSON_VALUES, max_size=6),
    st.sampled_from(list(Face)),
    st.booleans(),
)
def test_any_object_is_a_request_or_a_refusal(members: dict[str, object], face: Face, complete: bool) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | members if complete else members
    outcome = outcome_of(body, face)
    assert isinstance(outcome, ChatRequest) or (outcome.message and outcome.http_status in {400, 404})


@given(st.sampled_from(list(READERS)), JSON_VALUES)
def test_any_value_of_a_member_is_taken_or_refused_under_its_name(key: str, value: object) -> None:
    tools = {"tools": [TOOL]} if key in {"tool_choice", "parallel_tool_calls"} else {}
    stream = {"stream": True} if key == "stream_options" else {}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | tools | stream | {key: value}
    outcome = outcome_of(body, Face.NATIVE)
    assert isinstance(outcome, ChatRequest) or str(outcome.param).startswith(key)
