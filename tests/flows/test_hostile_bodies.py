"""Whatever a body is, both faces answer it, refuse it with a 4xx, or say 503: never a 500."""

import time
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.contract.readers import READERS, UNSUPPORTED_KEYS
from tests.support.hand_worker import Answered, call
from tests.support.horde import HordeProcesses

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
GOOD: dict[str, Any] = {"model": "served-by-nobody", "messages": [{"role": "user", "content": "hi"}]}
MEMBERS = st.dictionaries(
    st.sampled_from(sorted({*READERS, *UNSUPPORTED_KEYS, "model", "models"})), ANYTHING, max_size=3
)
REFUSALS = {400, 404, 503}


def on_both_faces(horde: HordeProcesses, body: bytes) -> tuple[Answered, Answered]:
    """The answers of the front and of the native API."""
    front = call("POST", f"{horde.front}/v1/chat/completions", body)
    native = call("POST", f"{horde.native}/api/v2/generate/chat/async", body)
    assert set(front.body) == {"error"}
    assert set(front.body["error"]) == {"message", "type", "param", "code", "metadata"}
    assert {"message", "rc"} <= set(native.body)
    return front, native


slow_horde = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@slow_horde
@given(value=ANYTHING)
def test_any_json_value_is_refused_in_the_same_words(horde: HordeProcesses, value: object) -> None:
    body = orjson.dumps(value) if _fits_orjson(value) else repr(value).encode()
    front, native = on_both_faces(horde, body)
    assert (front.status, native.status) == (400, 400)
    assert front.body["error"]["message"] == native.body["message"]


@slow_horde
@given(members=MEMBERS)
def test_any_member_in_a_good_body_is_refused_or_finds_no_worker(
    horde: HordeProcesses, members: dict[str, Any]
) -> None:
    if not _fits_orjson(members):
        members = {}
    front, native = on_both_faces(horde, orjson.dumps(GOOD | members | {"model": "served-by-nobody"}))
    assert {front.status, native.status} <= REFUSALS


DEEP = b'{"model":"m","messages":' + b"[" * 5_000_000 + b"}"
HOSTILE = [
    b"[" * 10_000_000,
    DEEP,
    b'{"a":' * 1_000_000,
    b'{"model":"m","messages":[' + b"{}," * 3_000_000 + b"{}]}",
    b'{"model":"m","messages":"' + b"\\u0000" * 1_000_000 + b'"}',
    b'{"model":"m","seed":' + b"9" * 5_000_000 + b"}",
    b'{"model":"m","temperature":1e400}',
    b'{"model":"m","temperature":NaN}',
    b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}',
    b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}',
    b'{"model":"m","model":"n","messages":[{"role":"user","content":"hi"}]}',
    b'{"model":"m","messages":[{"role":"user","content":"hi","role":"system"}]}',
    b"",
    b"\x00",
]
SECONDS = 20.0


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: body[:40].decode("latin-1"))
def test_a_hostile_body_is_refused_in_time_and_the_faces_live(horde: HordeProcesses, body: bytes) -> None:
    started = time.monotonic()
    front, native = on_both_faces(horde, body)
    assert (front.status, native.status) == (400, 400)
    assert front.body["error"]["message"] == native.body["message"]
    assert time.monotonic() - started < SECONDS
    assert horde.is_alive("front")
    assert horde.is_alive("web")


def _fits_orjson(value: object) -> bool:
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True
