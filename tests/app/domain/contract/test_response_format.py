"""response_format in every form, and the guard that only OpenAI's backend needs."""

from typing import Any

import pytest

P = "response_format.json_schema"
OBJECT = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def schema(**members: object) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": OBJECT} | members}


def missing(path: str) -> tuple[str, str, str]:
    return f"Missing required parameter: '{path}'.", path, "missing_required_parameter"


def unknown(path: str) -> tuple[str, str, str]:
    return f"Unknown parameter: '{path}'.", path, "UnsupportedChatParameter"


def wrong_type(path: str, expected: str, got: str) -> tuple[str, str, str]:
    return f"Invalid type for '{path}': expected {expected}, but got {got} instead.", path, "invalid_type"


def not_an_object(kind: str) -> tuple[str, str, str]:
    message = (
        "Invalid schema for response_format 'n': schema must be a JSON Schema of 'type: \"object\"', "
        f"got 'type: \"{kind}\"'."
    )
    return message, "response_format", "invalid_request"


REFUSALS: list[tuple[Any, tuple[str, str, str]]] = [
    ("json_object", wrong_type("response_format", "an object", "a string")),
    ({}, missing("response_format.type")),
    (
        {"type": "bogus"},
        (
            "Invalid value: 'bogus'. Supported values are: 'json_object', 'json_schema', and 'text'.",
            "response_format.type",
            "invalid_value",
        ),
    ),
    ({"type": "json_object", "schema": {}}, unknown("response_format.schema")),
    ({"type": "text", "json_schema": {}}, unknown("response_format.json_schema")),
    ({"type": "json_schema"}, missing(P)),
    ({"type": "json_schema", "json_schema": "x"}, wrong_type(P, "an object", "a string")),
    ({"type": "json_schema", "json_schema": {"schema": OBJECT}}, missing(f"{P}.name")),
    (schema(zzz=1), unknown(f"{P}.zzz")),
    (schema(description=1), wrong_type(f"{P}.description", "a string", "an integer")),
    (schema(strict="yes"), wrong_type(f"{P}.strict", "a boolean", "a string")),
    (schema(schema=[]), wrong_type(f"{P}.schema", "an object", "an array")),
    (
        schema(name="calendar event"),
        (
            (
                f"Invalid '{P}.name': string does not match pattern. Expected a string that matches the pattern "
                "'^[a-zA-Z0-9_-]+$'."
            ),
            f"{P}.name",
            "invalid_value",
        ),
    ),
    (
        schema(name="n" * 65),
        (
            (
                f"Invalid '{P}.name': string too long. Expected a string with maximum length 64, "
                "but got a string with length 65 instead."
            ),
            f"{P}.name",
            "string_above_max_length",
        ),
    ),
    (schema(strict=True, schema=None), missing(f"{P}.schema")),
    (schema(strict=True, schema={"type": "array", "items": {}}), not_an_object("array")),
    (schema(strict=True, schema={"anyOf": [OBJECT]}), not_an_object("None")),
]


@pytest.mark.parametrize(("value", "expected"), REFUSALS, ids=lambda value: str(value)[:60])
def test_a_bad_response_format_is_refused_in_openais_words(
    refused: Any, value: object, expected: tuple[str, str, str]
) -> None:
    assert refused(response_format=value) == expected


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"type": "text"}, None),
        ({"type": "text", "json_schema": None}, None),
        ({"type": "json_object"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "json_schema": {"name": "n"}},
            {"type": "json_schema", "json_schema": {"name": "n", "strict": False}},
        ),
        (
            schema(strict=None, description="d", schema={"type": "array", "default": None}),
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "n",
                    "description": "d",
                    "schema": {"type": "array", "default": None},
                    "strict": False,
                },
            },
        ),
        (
            schema(strict=True),
            {"type": "json_schema", "json_schema": {"name": "n", "schema": OBJECT, "strict": True}},
        ),
    ],
)
def test_a_good_response_format_is_stored(parsed: Any, value: object, stored: object) -> None:
    assert parsed(response_format=value).response_format == stored


def test_json_need_not_be_mentioned_by_default(parsed: Any) -> None:
    assert parsed(response_format={"type": "json_object"}).response_format == {"type": "json_object"}


def test_openais_guard_asks_for_the_word_json(refused: Any) -> None:
    assert refused(response_format={"type": "json_object"}, horde={"openai_guards": True}) == (
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
        "messages",
        "invalid_request",
    )


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "as JSON please"}],
        [{"role": "system", "content": [{"type": "text", "text": "Reply in Json."}]}, {"role": "user", "content": "a"}],
    ],
)
def test_openais_guard_is_content_with_the_word_anywhere(parsed: Any, messages: list[dict[str, Any]]) -> None:
    request = parsed(messages=messages, response_format={"type": "json_object"}, horde={"openai_guards": True})
    assert request.horde.openai_guards


def test_openais_guard_leaves_schemas_alone(parsed: Any) -> None:
    assert parsed(response_format=schema(strict=True), horde={"openai_guards": True}).response_format is not None
