"""Both faces refuse alike but for three things: the drop table, the native keys, the colon (details D2)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.domain.contract import ChatRequest, Face, parse_chat_request
from app.domain.contract.drop_table import NO_OPS, without_no_ops
from app.domain.contract.readers import NATIVE_KEYS, READERS, UNSUPPORTED_KEYS
from app.domain.errors import ContractRefusal

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=8)
)
MESSAGE_KEYS = ("role", "content", "type", "text", "tool_calls", "id", "function", "name", "arguments", "x")
SCHEMA_KEYS = ("json_schema", "schema", "strict", "properties", "items", "$ref", "anyOf", "enum", "required")
KEYS = st.sampled_from(MESSAGE_KEYS + SCHEMA_KEYS)
ANYTHING = st.recursive(
    SCALARS | st.sampled_from(["user", "assistant", "tool", "function", "json_schema", "object", "array", "#", "auto"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
MEMBERS = st.sampled_from(
    sorted({*READERS, *UNSUPPORTED_KEYS, "model", "models", "zzz"} - NATIVE_KEYS - {name for name, _ in NO_OPS})
)
BODIES = st.dictionaries(MEMBERS, ANYTHING, max_size=6)
GOOD: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def outcome(body: dict[str, Any], face: Face) -> ChatRequest | tuple[object, ...]:
    """The request, or the refusal as a client sees it; anything else fails the test."""
    try:
        return parse_chat_request(body, face)
    except ContractRefusal as refusal:
        seen = refusal.http_status, refusal.code, refusal.param, refusal.message
    assert seen[0] in {400, 404}
    assert seen[3]
    return seen


@given(BODIES)
def test_any_object_is_a_request_or_a_refusal_and_the_same_on_both_faces(body: dict[str, Any]) -> None:
    native, front = outcome(body, Face.NATIVE), outcome(body, Face.FRONT)
    assert native == front or ":" in str(body.get("model", body.get("models")))


@given(BODIES)
def test_any_member_beside_a_good_body_is_accepted_or_refused_alike(body: dict[str, Any]) -> None:
    changed = GOOD | {key: value for key, value in body.items() if key not in {"model", "models"}}
    assert outcome(changed, Face.NATIVE) == outcome(changed, Face.FRONT)


@given(st.sampled_from(NO_OPS))
def test_a_no_op_is_dropped_by_the_front_alone(no_op: tuple[str, object]) -> None:
    body = GOOD | dict([no_op])
    assert outcome(body, Face.FRONT) == outcome(GOOD, Face.FRONT)
    assert outcome(body, Face.NATIVE)[2] == no_op[0]  # type: ignore[index]
    assert without_no_ops(body) == GOOD


@given(st.sampled_from([("operation_key", "k"), ("dry_run", True)]))
def test_a_native_key_is_unknown_to_the_front_alone(member: tuple[str, object]) -> None:
    body = GOOD | dict([member])
    assert isinstance(outcome(body, Face.NATIVE), ChatRequest)
    assert outcome(body, Face.FRONT)[:3] == (400, "UnsupportedChatParameter", member[0])  # type: ignore[index]


@given(st.text("ab:", min_size=1).filter(lambda name: ":" in name))
def test_a_colon_is_unknown_to_the_front_alone(name: str) -> None:
    body = GOOD | {"model": name}
    assert isinstance(outcome(body, Face.NATIVE), ChatRequest)
    assert outcome(body, Face.FRONT)[:2] == (404, "model_not_found")  # type: ignore[index]
