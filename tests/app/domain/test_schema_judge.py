"""A client's strict schema is judged exactly, and in time that its size bounds."""

import time
from typing import Any

import pytest

from app.domain.schema_judge import UnusableSchema, mismatch

Json = dict[str, Any]

SECONDS = 5.0
"""Far above what a bounded judgement takes, far below what an unbounded one would."""


def an_object(**properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


NODE = {
    "$defs": {
        "node": {
            "anyOf": [
                an_object(first={"const": 1}, child={"$ref": "#/$defs/node"}),
                an_object(second={"const": 2}, child={"$ref": "#/$defs/node"}),
                {"type": "null"},
            ]
        }
    },
    **an_object(root={"$ref": "#/$defs/node"}),
}
MATCHES = [
    (an_object(a={"type": "integer"}), {"a": 1}),
    (an_object(a={"type": ["string", "null"]}), {"a": None}),
    (an_object(a={"type": "string", "pattern": "^h.*o$"}), {"a": "hello"}),
    (an_object(a={"enum": ["x", 1]}), {"a": 1}),
    (an_object(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}), {"a": 3}),
    (an_object(a={"type": "array", "items": {"type": "integer"}, "minItems": 1}), {"a": [1, 2]}),
    (NODE, {"root": {"first": 1, "child": {"second": 2, "child": None}}}),
]


@pytest.mark.parametrize(("schema", "value"), MATCHES, ids=str)
def test_a_value_that_matches_breaks_nothing(schema: Json, value: object) -> None:
    assert mismatch(schema, value) is None


MISMATCHES = [
    (an_object(a={"type": "integer"}), {"a": "1"}, ("$.a", "type")),
    (an_object(a={"type": "integer"}), {}, ("$", "required")),
    (an_object(), {"b": 1}, ("$", "additionalProperties")),
    (an_object(a={"type": "string", "pattern": "^h.*o$"}), {"a": "hi"}, ("$.a", "pattern")),
    (an_object(a={"enum": ["x", 1]}), {"a": 2}, ("$.a", "enum")),
    (an_object(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}), {"a": []}, ("$.a", "anyOf")),
    (an_object(a={"type": "array", "items": {"type": "integer"}, "maxItems": 1}), {"a": [1, 2]}, ("$.a", "maxItems")),
    (NODE, {"root": {"first": 1, "child": {"second": 1, "child": None}}}, ("$.root", "anyOf")),
]


@pytest.mark.parametrize(("schema", "value", "where"), MISMATCHES, ids=str)
def test_a_value_that_does_not_match_is_located(schema: Json, value: object, where: tuple[str, str]) -> None:
    assert mismatch(schema, value) == where


UNUSABLE = [
    an_object(a={"$ref": "http://127.0.0.1:1/schema.json"}),
    an_object(a={"$ref": "file:///etc/hostname"}),
    an_object(a={"$ref": "#/$defs/nowhere"}),
    an_object(a={"$ref": "#/properties/a"}),
    an_object(a={"type": "no-such-type"}),
    an_object(a={"pattern": "("}),
]


@pytest.mark.parametrize("schema", UNUSABLE, ids=str)
def test_a_schema_that_the_contract_would_refuse_is_unusable_and_fetches_nothing(schema: Json) -> None:
    with pytest.raises(UnusableSchema):
        mismatch(schema, {"a": "x"})


def test_a_catastrophic_pattern_takes_linear_time() -> None:
    started = time.monotonic()
    assert mismatch(an_object(a={"pattern": "^(a+)+$"}), {"a": "a" * 100_000 + "!"}) == ("$.a", "pattern")
    assert time.monotonic() - started < SECONDS


def test_alternatives_within_alternatives_do_not_multiply() -> None:
    both = [an_object(a={"enum": [1, bound]}, child={"$ref": "#/$defs/node"}) for bound in (2, 3)]
    schema = {"$defs": {"node": {"anyOf": both}}, **an_object(root={"$ref": "#/$defs/node"})}
    value: Json = {"a": 1, "child": "wrong"}
    for _ in range(40):
        value = {"child": value, "a": 1}
    started = time.monotonic()
    assert mismatch(schema, {"root": value}) == ("$.root", "anyOf")
    assert time.monotonic() - started < SECONDS
