"""Function tools, tool_choice and parallel_tool_calls."""

from typing import Any

import pytest

T = {"type": "function", "function": {"name": "f"}}


def function(**members: object) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f"} | members}]


def needs_tools(field: str) -> tuple[str, str, str]:
    return (
        f"Invalid value for '{field}': '{field}' is only allowed when 'tools' are specified.",
        field,
        "invalid_request",
    )


def missing(path: str) -> tuple[str, str, str]:
    return f"Missing required parameter: '{path}'.", path, "missing_required_parameter"


def wrong_type(path: str, expected: str, got: str) -> tuple[str, str, str]:
    return f"Invalid type for '{path}': expected {expected}, but got {got} instead.", path, "invalid_type"


def bad_parameters(kind: str) -> tuple[str, str, str]:
    message = (
        f"Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    )
    return message, "tools[0].function.parameters", "invalid_function_parameters"


REFUSALS: list[tuple[dict[str, Any], tuple[str, str, str]]] = [
    ({"tools": {}}, wrong_type("tools", "an array of objects", "an object")),
    ({"tools": ["f"]}, wrong_type("tools[0]", "an object", "a string")),
    ({"tools": [{"function": {"name": "f"}}]}, missing("tools[0].type")),
    ({"tools": [{"type": "function"}]}, missing("tools[0].function")),
    ({"tools": [{"type": "function", "function": {}}]}, missing("tools[0].function.name")),
    ({"tools": [{"type": "function", "function": 1}]}, wrong_type("tools[0].function", "an object", "an integer")),
    (
        {"tools": [{"type": "custom", "custom": {"name": "f"}}]},
        (
            "Unsupported value: 'tools[0].type' does not support 'custom' on the horde.",
            "tools[0].type",
            "UnsupportedChatParameter",
        ),
    ),
    (
        {"tools": [{"type": "bogus"}]},
        (
            "Invalid value: 'bogus'. Supported values are: 'function' and 'custom'.",
            "tools[0].type",
            "invalid_value",
        ),
    ),
    (
        {"tools": function(name="a b")},
        (
            (
                "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the "
                "pattern '^[a-zA-Z0-9_-]+$'."
            ),
            "tools[0].function.name",
            "invalid_value",
        ),
    ),
    (
        {"tools": function(name="a\n")},
        (
            (
                "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the "
                "pattern '^[a-zA-Z0-9_-]+$'."
            ),
            "tools[0].function.name",
            "invalid_value",
        ),
    ),
    (
        {"tools": function(name="f" * 65)},
        (
            (
                "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, "
                "but got a string with length 65 instead."
            ),
            "tools[0].function.name",
            "string_above_max_length",
        ),
    ),
    (
        {"tools": [T] * 129},
        (
            (
                "Invalid 'tools': array too long. Expected an array with maximum length 128, "
                "but got an array with length 129 instead."
            ),
            "tools",
            "array_above_max_length",
        ),
    ),
    ({"tools": function(description=1)}, wrong_type("tools[0].function.description", "a string", "an integer")),
    ({"tools": function(strict="yes")}, wrong_type("tools[0].function.strict", "a boolean", "a string")),
    ({"tools": function(parameters=[])}, wrong_type("tools[0].function.parameters", "an object", "an array")),
    ({"tools": function(parameters={})}, bad_parameters("None")),
    ({"tools": function(parameters={"type": "array"})}, bad_parameters("array")),
    ({"tool_choice": "none"}, needs_tools("tool_choice")),
    ({"tool_choice": "auto"}, needs_tools("tool_choice")),
    ({"tools": [], "tool_choice": "auto"}, needs_tools("tool_choice")),
    ({"parallel_tool_calls": True}, needs_tools("parallel_tool_calls")),
    ({"tools": [], "parallel_tool_calls": False}, needs_tools("parallel_tool_calls")),
    ({"tools": [T], "parallel_tool_calls": 1}, wrong_type("parallel_tool_calls", "a boolean", "an integer")),
    (
        {"tools": [T], "tool_choice": "bogus"},
        (
            "Invalid value: 'bogus'. Supported values are: 'none', 'auto', and 'required'.",
            "tool_choice",
            "invalid_value",
        ),
    ),
    (
        {"tools": [T], "tool_choice": 5},
        wrong_type("tool_choice", "one of one of 'none', 'auto', or 'required' or object", "an integer"),
    ),
    ({"tools": [T], "tool_choice": {"type": "bogus"}}, missing("tool_choice.function")),
    ({"tools": [T], "tool_choice": {"type": "allowed_tools", "allowed_tools": {}}}, missing("tool_choice.function")),
    ({"tools": [T], "tool_choice": {"type": "function", "function": {}}}, missing("tool_choice.function.name")),
    (
        {"tools": [T], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        (
            "Invalid value for 'tool_choice': no function named 'g' was specified in the 'tools' parameter.",
            "tool_choice",
            "invalid_request",
        ),
    ),
]


@pytest.mark.parametrize(("members", "expected"), REFUSALS, ids=lambda value: str(value)[:60])
def test_a_bad_tool_field_is_refused_in_openais_words(
    refused: Any, members: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    assert refused(**members) == expected


def test_unknown_keys_of_a_tool_are_dropped_down_to_its_parameters(parsed: Any) -> None:
    parameters = {"type": "object", "properties": {"a": {"default": None}}, "x-vendor": 1}
    tools = [
        {
            "type": "function",
            "zzz": 1,
            "function": {"name": "f", "description": "d", "strict": False, "zzz": 1, "parameters": parameters},
        }
    ]
    assert parsed(tools=tools).tools == [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": parameters, "strict": False},
        }
    ]


def test_null_members_of_a_function_count_as_left_out(parsed: Any) -> None:
    assert parsed(tools=function(description=None, parameters=None, strict=None)).tools == [T]


def test_a_long_description_is_accepted(parsed: Any) -> None:
    assert parsed(tools=function(description="d" * 20_000)).tools is not None


def test_an_empty_list_of_tools_means_absent(parsed: Any) -> None:
    assert parsed(tools=[]) == parsed()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, "auto"),
        ({"tool_choice": None}, "auto"),
        ({"tool_choice": "auto"}, "auto"),
        ({"tool_choice": "none"}, "none"),
        ({"tool_choice": "required"}, "required"),
        (
            {"tool_choice": {"type": "zzz", "function": {"name": "f", "zzz": 1}, "zzz": 1}},
            {"type": "function", "function": {"name": "f"}},
        ),
    ],
)
def test_tool_choice_is_stored_with_its_default(parsed: Any, given: dict[str, Any], stored: object) -> None:
    assert parsed(tools=[T], **given).tool_choice == stored


@pytest.mark.parametrize(("given", "stored"), [({}, True), ({"parallel_tool_calls": False}, False)])
def test_parallel_calls_are_welcome_unless_refused(parsed: Any, given: dict[str, Any], stored: bool) -> None:
    assert parsed(tools=[T], **given).parallel_tool_calls is stored


def test_without_tools_no_tool_field_is_stored(parsed: Any) -> None:
    request = parsed()
    assert (request.tools, request.tool_choice, request.parallel_tool_calls) == (None, None, None)
