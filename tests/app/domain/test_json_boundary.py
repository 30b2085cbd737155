"""Bytes of strangers: parsed, mended or refused, within bounded time."""

import time
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import BadRequest, ContractRefusal, HordeError
from app.domain.json_boundary import (
    MAX_NESTING,
    NOT_JSON,
    clean_text,
    digest_of,
    parse_object,
    parse_worker_object,
)

UNREADABLE = "The body is not valid JSON, or holds a number beyond 64 bits."
REASON = "We could not parse the JSON body of your request: "


def refusal_of(raw: bytes) -> str:
    with pytest.raises(ContractRefusal) as caught:
        parse_object(raw)
    assert (caught.value.http_status, caught.value.code, caught.value.param) == (400, "invalid_request", None)
    return caught.value.message


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"model=m",
        b'{"a":1,}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e999}',
        b'{"a":"\x00"}',
        b'{"a":"\\ud83d',
        b"[]",
        b'"text"',
        b"null",
        b"]" * 200,
    ],
)
def test_what_is_not_a_json_object_is_refused_in_openais_words(raw: bytes) -> None:
    assert refusal_of(raw) == NOT_JSON


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a":"\\ud83d"}', "it holds half of a surrogate pair (\\ud800 to \\udfff). Send whole characters."),
        (b'{"\\uDC00":1}', "it holds half of a surrogate pair (\\ud800 to \\udfff). Send whole characters."),
        (b'{"a":"x\\u0000y"}', "it holds a NUL character (\\u0000). Remove it."),
        (b'{"\\\\\\u0000":1}', "it holds a NUL character (\\u0000). Remove it."),
        (
            b'{"a":9223372036854775808}',
            "it holds an integer beyond 64 bits. Send it as a string or a smaller number.",
        ),
        (
            b'{"a":[-9223372036854775809]}',
            "it holds an integer beyond 64 bits. Send it as a string or a smaller number.",
        ),
        (
            b'{"a":' + b"9" * 300 + b"}",
            "it holds an integer beyond 64 bits. Send it as a string or a smaller number.",
        ),
        (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", "it nests deeper than 64 levels. Send a flatter body."),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "it nests deeper than 64 levels. Send a flatter body."),
    ],
    ids=lambda value: str(value)[:30],
)
def test_json_that_cannot_be_kept_is_refused_with_the_reason(raw: bytes, reason: str) -> None:
    assert refusal_of(raw) == REASON + reason


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        (b'{"a":"\\\\u0000"}', {"a": "\\u0000"}),
        (b'{"a":"\\\\ud83d"}', {"a": "\\ud83d"}),
        (b'{"a":9223372036854775807,"b":-9223372036854775808}', {"a": 2**63 - 1, "b": -(2**63)}),
        (b'{"a":"99999999999999999999999"}', {"a": "99999999999999999999999"}),
        (b'{"a":0.5000000000000000000000000}', {"a": 0.5}),
        (b'{"a":12345678901234567890123.5}', {"a": 1.2345678901234568e22}),
        (b'{"a":"[[[[{{{{\\"[[["}', {"a": '[[[[{{{{"[[['}),
        (b' {"a" : [ ] } ', {"a": []}),
    ],
)
def test_good_json_is_parsed(raw: bytes, value: object) -> None:
    assert parse_object(raw) == value


def test_nesting_up_to_the_limit_is_accepted() -> None:
    raw = b'{"a":' + b"[" * (MAX_NESTING - 1) + b"]" * (MAX_NESTING - 1) + b"}"
    assert parse_object(raw).keys() == {"a"}


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 10_000_000,
        b"[" * 5_000_000 + b"]" * 5_000_000,
        (b"[" * 64 + b"]") * 150_000,
        b"[]" * 5_000_000,
        b'\\"' * 5_000_000,
        b'"' + b'\\"' * 5_000_000,
        b'{"a":' + b"9" * 10_000_000 + b"}",
        b'{"a":"' + b"\\\\" * 4_000_000 + b'\\u0000"}',
        b'"",' * 3_000_000,
    ],
    ids=range(9),
)
def test_ten_hostile_megabytes_are_refused_in_bounded_time(raw: bytes) -> None:
    began = time.process_time()
    refusal_of(raw)
    assert time.process_time() - began < 5


DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    # NUL is the one character of a JSON text that is refused.
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), inner)
    ),
    max_leaves=30,
)


@given(DOCUMENTS)
def test_every_storable_document_is_parsed_as_it_is(document: object) -> None:
    assert parse_object(orjson.dumps({"document": document})) == {"document": document}


ANY_BYTES = st.binary(max_size=200) | st.text(alphabet='[]{}",:\\u0d83019.e-', max_size=100).map(str.encode)


def outcome_of(parse: Callable[[bytes], dict[str, object]], raw: bytes) -> dict[str, object] | HordeError:
    try:
        return parse(raw)
    except (BadRequest, ContractRefusal) as refusal:
        return refusal


@given(ANY_BYTES)
def test_any_bytes_are_a_storable_object_or_a_refusal(raw: bytes) -> None:
    outcome = outcome_of(parse_object, raw)
    assert isinstance(outcome, ContractRefusal) or orjson.loads(orjson.dumps(outcome)) == outcome


@given(ANY_BYTES)
def test_any_bytes_of_a_worker_are_a_storable_object_or_a_refusal(raw: bytes) -> None:
    outcome = outcome_of(parse_worker_object, raw)
    assert isinstance(outcome, BadRequest) or orjson.dumps(outcome)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":"x"}', {"a": "x"}),
        (b'{"a":"\\udcaf"}', {"a": "\ufffd"}),
        (b'{"a":["\\ud83d\\ude00",{"\\ud83d":"\\ud83d x"}]}', {"a": ["😀", {"\ufffd": "\ufffd x"}]}),
        (b'{"a":"caf\xff","b":[7,1.5]}', {"a": "caf\ufffd", "b": [7, 1.5]}),
        (b'{"a":"two\nlines"}', {"a": "two\nlines"}),
    ],
)
def test_a_workers_broken_text_is_mended(raw: bytes, value: object) -> None:
    assert parse_worker_object(raw) == value


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"[]", "The body must be a JSON object."),
        (b"{", UNREADABLE),
        (b'{"a":NaN}', UNREADABLE),
        (b'{"a":1e999}', UNREADABLE),
        (b'{"a":"\xff","b":9223372036854775808}', UNREADABLE),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "The body nests deeper than 64 levels."),
    ],
)
def test_what_a_worker_cannot_have_meant_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_worker_object(raw)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "cleaned"), [("a😀b", "a😀b"), ("a\ud83db", "a\ufffdb"), ("a\x00b", "a\ufffdb"), ("", "")]
)
def test_text_that_nothing_can_store_is_replaced(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"b":{"a":1,"c":":","a":2}}',
        b'{"b":[{},{"a":1,"\\u0061":2}]}',
        b'{"x":"\\"a\\":1","a":"}","a":"{"}',
    ],
)
def test_a_key_that_comes_twice_in_one_object_is_named(raw: bytes) -> None:
    assert refusal_of(raw) == f"{REASON}one of its objects holds the key 'a' twice. Send each key once."


def test_a_key_that_comes_twice_in_a_large_body_is_refused_at_once() -> None:
    raw = b'{"a":[' + b'{"a":1},' * 200_000 + b'{"a":1,"a":1}]}'
    assert refusal_of(raw) == f"{REASON}one of its objects holds a key twice. Send each key once."


def test_one_key_in_several_objects_is_no_duplicate() -> None:
    assert parse_object(b'{"a":{"a":":","b":"a:"},"b":[{"a":1},{"a":1}]}')["b"] == [{"a": 1}, {"a": 1}]


def test_a_digest_ignores_the_order_of_keys_at_every_level() -> None:
    assert digest_of({"a": 1, "b": {"c": 2, "d": 3}}) == digest_of({"b": {"d": 3, "c": 2}, "a": 1})
    assert digest_of({"a": [1, 2]}) != digest_of({"a": [2, 1]})
