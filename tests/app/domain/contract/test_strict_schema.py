"""OpenAI's subset of JSON Schema: each refusal in its words, and limits that hold in bounded time."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from app.domain.contract import ChatRequest

Json = dict[str, Any]
Refused = Callable[..., tuple[str, str | None, str]]
Parsed = Callable[..., ChatRequest]

SECONDS = 5.0


def an_object(**properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def as_format(schema: Json, *, strict: bool = True) -> Json:
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": strict, "schema": schema}}
    }


def as_tool(schema: Json, *, strict: bool = True) -> Json:
    return {"tools": [{"type": "function", "function": {"name": "n", "strict": strict, "parameters": schema}}]}


def at(context: str, reason: str) -> str:
    return f"In context={context}, {reason}"


CLOSED = "'additionalProperties' is required to be supplied and to be false."
LISTED = "'required' is required to be supplied and to be an array including every key in properties."
ALIKE = (
    "Objects provided via 'anyOf' must not share identical first keys. Consider adding a discriminator key or "
    "rearranging the properties to ensure the first key is unique."
)
PERMITTED = "is not permitted."
REFUSALS = [
    ({"type": "object"}, at("()", CLOSED)),
    ({"type": "object", "properties": {}, "additionalProperties": True}, at("()", CLOSED)),
    (an_object(x={"type": "object", "properties": {}}), at("('properties', 'x')", CLOSED)),
    ({**an_object(id={"type": "string"}), "required": []}, at("()", f"{LISTED} Missing 'id'.")),
    ({**an_object(), "required": ["id"]}, at("()", f"{LISTED} Extra required key 'id' supplied.")),
    ({**an_object(), "required": "id"}, at("()", "'required' must be an array of strings.")),
    (an_object(x={"type": "string", "maxLength": 1}), at("('properties', 'x')", f"'maxLength' {PERMITTED}")),
    (an_object(x={"type": "string", "minLength": 1}), at("('properties', 'x')", f"'minLength' {PERMITTED}")),
    (an_object(x={"type": "string", "default": "a"}), at("('properties', 'x')", f"'default' {PERMITTED}")),
    (an_object(x={"oneOf": [{"type": "string"}]}), at("('properties', 'x')", f"'oneOf' {PERMITTED}")),
    (an_object(x={"allOf": [{"type": "string"}]}), at("('properties', 'x')", f"'allOf' {PERMITTED}")),
    (an_object(x={"$id": "http://host/x", "type": "string"}), at("('properties', 'x')", f"'$id' {PERMITTED}")),
    (
        an_object(x={"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        at("('properties', 'x')", f"'uniqueItems' {PERMITTED}"),
    ),
    (an_object(x={"type": "array"}), at("('properties', 'x')", "array schema missing items.")),
    (an_object(x={}), at("('properties', 'x')", "schema must have a 'type' key.")),
    (an_object(x=True), at("('properties', 'x')", "the schema must be an object.")),
    (an_object(x={"type": "string", "format": "uri"}), at("('properties', 'x')", "'uri' is not a valid format.")),
    (an_object(x={"type": "string", "format": []}), at("('properties', 'x')", "'format' must be a string.")),
    (an_object(x={"type": "integer", "minimum": "1"}), at("('properties', 'x')", "'minimum' must be a number.")),
    (
        an_object(x={"type": "number", "multipleOf": 0}),
        at("('properties', 'x')", "'multipleOf' must be a number above 0."),
    ),
    (
        an_object(x={"type": "array", "items": {"type": "null"}, "minItems": -1}),
        at("('properties', 'x')", "'minItems' must be a whole number, 0 or more."),
    ),
    (an_object(x={"enum": []}), at("('properties', 'x')", "'enum' must be an array with at least one value.")),
    ({**an_object(), "properties": [[]]}, at("()", "'properties' must be an object.")),
    (an_object(x={"type": "banana"}), "'banana' is not valid under any of the given schemas."),
    (an_object(x={"anyOf": []}), "[] is not an array with at least one schema."),
    ({**an_object(), "anyOf": [{"type": "object"}]}, at("()", "'anyOf' is not permitted at the root.")),
    ({**an_object(), "$schema": "http://host/mine"}, at("()", "'$schema' names an unknown dialect.")),
    ({**an_object(), "$schema": []}, at("()", "'$schema' must be a string.")),
    (
        an_object(x={"type": "string", "pattern": "(?=a)b"}),
        at(
            "('properties', 'x')",
            "'pattern' is not a supported regular expression: invalid perl operator: (?=. "
            "Look-around and back-references are not supported.",
        ),
    ),
    (an_object(x={"$ref": "http://127.0.0.1:1/x"}), at("('properties', 'x')", "'$ref' must begin with '#'.")),
    (an_object(x={"$ref": "file:///etc/passwd"}), at("('properties', 'x')", "'$ref' must begin with '#'.")),
    (
        an_object(x={"$ref": "#/$defs/y"}),
        at("('properties', 'x')", "reference to component '#/$defs/y' which was not found in the schema."),
    ),
    (
        an_object(x={"$ref": "#/required"}),
        at("('properties', 'x')", "reference to component '#/required' which was not found in the schema."),
    ),
    (
        an_object(x={"$ref": "#/properties/x"}),
        at("('properties', 'x')", "'$ref' leads back to itself and never into the value."),
    ),
    (
        {**an_object(), "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}},
        at("('$defs', 'a')", "'$ref' leads back to itself and never into the value."),
    ),
    (
        an_object(x={"anyOf": [an_object(k={"type": "string"}), an_object(k={"type": "string"}, l={"type": "null"})]}),
        ALIKE,
    ),
]


@pytest.mark.parametrize(("schema", "reason"), REFUSALS, ids=str)
def test_a_strict_response_format_outside_the_subset_is_refused(refused: Refused, schema: Json, reason: str) -> None:
    expected = f"Invalid schema for response_format 'n': {reason}"
    assert refused(**as_format(schema)) == (expected, "response_format", "invalid_request")


SAID_DIFFERENTLY = ("regular expression", "()", "'properties' must", "is not of type", "the schema must be an object")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [row for row in REFUSALS if not any(part in row[1] for part in SAID_DIFFERENTLY)],
    ids=str,
)
def test_a_strict_function_outside_the_subset_is_refused(refused: Refused, schema: Json, reason: str) -> None:
    expected = f"Invalid schema for function 'n': {reason}"
    assert refused(**as_tool(schema)) == (expected, "tools[0].function.parameters", "invalid_function_parameters")


LOOSE = [
    ({"type": "object"}, at("()", "object schema missing properties.")),
    (
        {"type": "object", "properties": {"x": {"type": "array"}}},
        at("('properties', 'x')", "array schema missing items."),
    ),
    ({"type": "object", "properties": {"x": []}}, "[] is not of type 'object', 'boolean'."),
    ({"type": "object", "properties": []}, "[] is not of type 'object'."),
    ({"type": "object", "properties": {}, "required": "x"}, "'x' is not of type 'array'."),
    ({"type": "object", "properties": {}, "required": [1]}, "1 is not of type 'string'."),
    (
        {"type": "object", "properties": {"x": {"type": "banana"}}},
        "'banana' is not valid under any of the given schemas.",
    ),
    ({"type": "object", "properties": {"x": {"anyOf": {}}}}, "{} is not an array with at least one schema."),
]


@pytest.mark.parametrize(("schema", "reason"), LOOSE, ids=str)
def test_parameters_that_no_backend_could_read_are_refused_though_not_strict(
    refused: Refused, schema: Json, reason: str
) -> None:
    expected = f"Invalid schema for function 'n': {reason}"
    given = as_tool(schema, strict=False)
    assert refused(**given) == (expected, "tools[0].function.parameters", "invalid_function_parameters")


TREE = {
    "$defs": {
        "node": an_object(value={"type": "integer"}, children={"type": "array", "items": {"$ref": "#/$defs/node"}})
    },
    **an_object(root={"$ref": "#/$defs/node"}),
}
ACCEPTED = [
    an_object(),
    {"type": "object", "properties": {}, "additionalProperties": False},
    {**an_object(x={"type": "string", "title": "X"}), "title": "Model", "description": "d"},
    {**an_object(), "$schema": "http://json-schema.org/draft-07/schema#"},
    an_object(x={"type": "string", "pattern": r"^漢\d+é$", "format": "date-time"}),
    an_object(x={"type": "number", "minimum": 0, "exclusiveMaximum": 1.5, "multipleOf": 0.5}),
    an_object(x={"type": ["integer", "null"]}, y={"enum": ["a", None, 1]}, z={"const": {"k": []}}),
    an_object(x={"type": "array", "items": an_object(y={"type": "null"}), "minItems": 0, "maxItems": 9}),
    an_object(x={"anyOf": [an_object(kind={"const": "a"}), an_object(kind={"const": "b"})]}),
    an_object(x={"$ref": "#"}),
    an_object(**{"a/b": {"type": "string"}}, y={"$ref": "#/properties/a~1b"}),
    {**an_object(x={"$ref": "#/definitions/y"}), "definitions": {"y": {"type": "string"}}},
    TREE,
]


@pytest.mark.parametrize("schema", ACCEPTED, ids=str)
def test_a_schema_of_the_subset_is_accepted_as_it_came(parsed: Parsed, schema: Json) -> None:
    kept = parsed(**as_format(schema)).response_format
    assert kept is not None
    assert kept["json_schema"] == {"name": "n", "strict": True, "schema": schema}


def test_what_is_not_strict_is_passed_on_unjudged(parsed: Parsed) -> None:
    schema = {"type": "array", "pattern": "(?=a)", "x": {"$ref": "http://127.0.0.1:1/x"}}
    kept = parsed(**as_format(schema, strict=False)).response_format
    assert kept is not None
    assert kept["json_schema"] == {"name": "n", "strict": False, "schema": schema}


def test_a_pattern_in_a_function_is_the_workers_to_read(parsed: Parsed) -> None:
    schema = an_object(x={"type": "string", "pattern": "(?=a)b"})
    tools = parsed(**as_tool(schema)).tools
    assert tools is not None
    assert tools[0]["function"] == {"name": "n", "strict": True, "parameters": schema}


def test_hostile_patterns_are_refused_in_bounded_time(refused: Refused) -> None:
    heavy = an_object(**{f"p{n}": {"type": "string", "pattern": r"[\pL\pN]{9}" + str(n)} for n in range(5000)})
    started = time.monotonic()
    refused(**as_format(heavy))
    assert time.monotonic() - started < SECONDS


def nested(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = an_object(x=schema)
    return schema


def alternatives(levels: int) -> Json:
    """Definitions of which each holds the one before it twice."""
    defs: Json = {"d0": {"type": "string"}}
    for level in range(1, levels + 1):
        defs[f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {**an_object(x={"$ref": f"#/$defs/d{levels}"}), "$defs": defs}


def chain(steps: int) -> Json:
    defs: Json = {f"d{step}": {"$ref": f"#/$defs/d{step + 1}"} for step in range(steps)}
    return {**an_object(), "$defs": defs | {f"d{steps}": {"type": "string"}}}


LIMITS = [
    (nested(10), nested(11), "11 levels of nesting exceeds limit of 10."),
    (
        an_object(**{f"p{n}": {"type": "null"} for n in range(5000)}),
        an_object(**{f"p{n}": {"type": "null"} for n in range(5001)}),
        "5001 parameters exceeds limit of 5000.",
    ),
    (
        an_object(x={"enum": list(range(1000))}),
        an_object(x={"enum": list(range(1001))}),
        "1001 enum values exceeds limit of 1000.",
    ),
    (
        an_object(x={"const": "k" * 119_999}),
        an_object(x={"const": "k" * 120_000}),
        "120001 characters of names, enum and const values exceeds limit of 120000.",
    ),
    (
        an_object(x={"enum": ["k" * 60 + str(n) for n in range(100, 340)]}),
        an_object(x={"enum": ["k" * 60 + str(n) for n in range(100, 360)]}),
        at("('properties', 'x')", "an enum of more than 250 values may have 15000 characters in all."),
    ),
    (
        an_object(x={"type": "null", "description": "d" * 261_900}),
        an_object(x={"type": "null", "description": "d" * 262_144}),
        "the schema is larger than 262144 bytes.",
    ),
    (
        an_object(**{f"p{n}": {"type": "string", "pattern": f"a{n}"} for n in range(100)}),
        an_object(**{f"p{n}": {"type": "string", "pattern": f"a{n}"} for n in range(101)}),
        "more than 100 patterns.",
    ),
    (alternatives(8), alternatives(30), "references and alternatives expand beyond 2000 schemas."),
    (chain(60), chain(2000), "more than 64 references in a row."),
]


@pytest.mark.parametrize(("fits", "exceeds", "reason"), LIMITS, ids=lambda value: str(value)[:40])
def test_a_schema_up_to_its_limits_is_accepted_and_beyond_refused_at_once(
    parsed: Parsed, refused: Refused, fits: Json, exceeds: Json, reason: str
) -> None:
    started = time.monotonic()
    assert parsed(**as_format(fits)).response_format is not None
    message, param, code = refused(**as_format(exceeds))
    assert (message.endswith(reason), param, code) == (True, "response_format", "invalid_request")
    assert time.monotonic() - started < SECONDS
