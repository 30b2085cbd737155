"""The plain top-level members: ranges, types, defaults and their refusals."""

from typing import Any

import pytest

from app.domain.contract import Face, parse_chat_request
from app.domain.errors import ContractRefusal
from app.domain.json_boundary import NOT_JSON

NO_MODEL = "you must provide a model parameter"


def wrong_type(field: str, expected: str, got: str) -> tuple[str, str, str]:
    return f"Invalid type for '{field}': expected {expected}, but got {got} instead.", field, "invalid_type"


def below(field: str, kind: str, bound: str, got: str) -> tuple[str, str, str]:
    message = f"Invalid '{field}': {kind} below minimum value. Expected a value >= {bound}, but got {got} instead."
    return message, field, f"{kind}_below_min_value"


def above(field: str, kind: str, bound: str, got: str) -> tuple[str, str, str]:
    message = f"Invalid '{field}': {kind} above maximum value. Expected a value <= {bound}, but got {got} instead."
    return message, field, f"{kind}_above_max_value"


def too_long(field: str, limit: int, length: int) -> tuple[str, str, str]:
    message = (
        f"Invalid '{field}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {length} instead."
    )
    return message, field, "string_above_max_length"


REFUSALS: list[tuple[dict[str, Any], tuple[str, str | None, str]]] = [
    ({"model": None}, (NO_MODEL, None, "invalid_request")),
    ({"model": ""}, (NO_MODEL, None, "invalid_request")),
    ({"model": 5}, (NOT_JSON, None, "invalid_request")),
    ({"model": "m" * 256}, too_long("model", 255, 256)),
    ({"messages": None}, ("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")),
    ({"temperature": "hot"}, wrong_type("temperature", "a decimal", "a string")),
    ({"temperature": True}, wrong_type("temperature", "a decimal", "a boolean")),
    ({"temperature": 200}, above("temperature", "decimal", "2", "200")),
    ({"temperature": -0.1}, below("temperature", "decimal", "0", "-0.1")),
    ({"top_p": 1.5}, above("top_p", "decimal", "1", "1.5")),
    ({"top_p": -1}, below("top_p", "decimal", "0", "-1")),
    ({"presence_penalty": -2.5}, below("presence_penalty", "decimal", "-2", "-2.5")),
    ({"frequency_penalty": 3}, above("frequency_penalty", "decimal", "2", "3")),
    ({"frequency_penalty": [1]}, wrong_type("frequency_penalty", "a decimal", "an array")),
    ({"max_tokens": 0}, below("max_tokens", "integer", "1", "0")),
    ({"max_tokens": 2**31}, above("max_tokens", "integer", str(2**31 - 1), str(2**31))),
    ({"max_tokens": 5.0}, wrong_type("max_tokens", "an integer", "a decimal number")),
    ({"max_completion_tokens": "5"}, wrong_type("max_completion_tokens", "an integer", "a string")),
    (
        {"max_tokens": 5, "max_completion_tokens": 6},
        (
            "Invalid value for 'max_tokens': 'max_tokens' and 'max_completion_tokens' differ. Send one of them.",
            "max_tokens",
            "invalid_request",
        ),
    ),
    ({"seed": 1.5}, wrong_type("seed", "an integer", "a decimal number")),
    ({"seed": 2**63}, above("seed", "integer", str(2**63 - 1), str(2**63))),
    ({"stop": 5}, wrong_type("stop", "one of a string or array of strings", "an integer")),
    ({"stop": ["a", 5]}, wrong_type("stop[1]", "a string", "an integer")),
    (
        {"stop": ["a", "b", "c", "d", "e"]},
        (
            (
                "Invalid 'stop': array too long. Expected an array with maximum length 4, "
                "but got an array with length 5 instead."
            ),
            "stop",
            "array_above_max_length",
        ),
    ),
    (
        {"reasoning_effort": "extreme"},
        (
            (
                "Invalid value: 'extreme'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', "
                "and 'max'."
            ),
            "reasoning_effort",
            "invalid_value",
        ),
    ),
    ({"reasoning_effort": 1}, wrong_type("reasoning_effort", "a string", "an integer")),
    ({"stream": "true"}, wrong_type("stream", "a boolean", "a string")),
    (
        {"stream_options": {"include_usage": True}},
        (
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
            "invalid_request",
        ),
    ),
    (
        {"stream": True, "stream_options": {"bogus": 1}},
        ("Unknown parameter: 'stream_options.bogus'.", "stream_options.bogus", "UnsupportedChatParameter"),
    ),
    ({"stream": True, "stream_options": 5}, wrong_type("stream_options", "an object", "an integer")),
    (
        {"stream": True, "stream_options": {"include_usage": 1}},
        wrong_type("stream_options.include_usage", "a boolean", "an integer"),
    ),
    ({"user": 5}, wrong_type("user", "a string", "an integer")),
    ({"prompt_cache_key": {}}, wrong_type("prompt_cache_key", "a string", "an object")),
    ({"safety_identifier": "s" * 65}, too_long("safety_identifier", 64, 65)),
    ({"metadata": "x"}, wrong_type("metadata", "an object", "a string")),
    ({"metadata": {"k": 1}}, wrong_type("metadata.k", "a string", "an integer")),
    ({"metadata": {"k": "v" * 513}}, too_long("metadata.k", 512, 513)),
    (
        {"metadata": {str(number): "v" for number in range(17)}},
        (
            (
                "Invalid 'metadata': too many properties. Expected an object with at most 16 properties, "
                "but got an object with 17 properties instead."
            ),
            "metadata",
            "object_above_max_properties",
        ),
    ),
    (
        {"metadata": {"k" * 65: "v"}},
        (
            (
                "Invalid property name in 'metadata': 'kkk...kkk' is too long. Expected a string with "
                "maximum length 64, but got a string with length 65 instead."
            ),
            f"metadata.{'k' * 65}",
            "property_name_above_max_length",
        ),
    ),
    ({"operation_key": "k" * 256}, too_long("operation_key", 255, 256)),
    (
        {"operation_key": ""},
        (
            (
                "Invalid 'operation_key': empty string. Expected a string with minimum length 1, "
                "but got an empty string instead."
            ),
            "operation_key",
            "empty_string",
        ),
    ),
    ({"dry_run": 1}, wrong_type("dry_run", "a boolean", "an integer")),
]


@pytest.mark.parametrize(("members", "expected"), REFUSALS, ids=lambda value: str(value)[:40])
def test_a_member_out_of_its_rule_is_refused_in_openais_words(
    refused: Any, members: dict[str, Any], expected: tuple[str, str | None, str]
) -> None:
    assert refused(**members) == expected


@pytest.mark.parametrize(
    ("members", "field", "value"),
    [
        ({}, "temperature", 1.0),
        ({"temperature": 0}, "temperature", 0.0),
        ({"temperature": 2}, "temperature", 2.0),
        ({}, "top_p", 1.0),
        ({"presence_penalty": -2}, "presence_penalty", -2.0),
        ({}, "frequency_penalty", 0.0),
        ({}, "stop", ()),
        ({"stop": "\n"}, "stop", ("\n",)),
        ({"stop": ""}, "stop", ()),
        ({"stop": ["a", ""]}, "stop", ("a",)),
        ({"stop": []}, "stop", ()),
        ({}, "seed", None),
        ({"seed": -(2**63)}, "seed", -(2**63)),
        ({}, "max_tokens", None),
        ({"max_tokens": 7}, "max_tokens", 7),
        ({"max_completion_tokens": 7}, "max_tokens", 7),
        ({"max_completion_tokens": 7, "max_tokens": 7}, "max_tokens", 7),
        ({}, "reasoning_effort", None),
        ({"reasoning_effort": "medium"}, "reasoning_effort", None),
        ({"reasoning_effort": "xhigh"}, "reasoning_effort", "xhigh"),
        ({}, "stream", False),
        ({"stream": True, "stream_options": {}}, "include_usage", False),
        ({"stream": True, "stream_options": {"include_usage": True}}, "include_usage", True),
        ({"stream": True, "stream_options": {"include_usage": None}}, "include_usage", False),
        ({"user": "u", "safety_identifier": "s"}, "labels", {"user": "u", "safety_identifier": "s"}),
        (
            {"metadata": {"a": "b"}, "prompt_cache_key": "p"},
            "labels",
            {"metadata": {"a": "b"}, "prompt_cache_key": "p"},
        ),
        ({"operation_key": "k"}, "operation_key", "k"),
        ({"dry_run": True}, "dry_run", True),
    ],
)
def test_a_good_member_is_kept_normalised(parsed: Any, members: dict[str, Any], field: str, value: object) -> None:
    assert getattr(parsed(**members), field) == value


def test_null_means_absent_for_every_member(parsed: Any) -> None:
    nulls = dict.fromkeys(
        ("max_tokens", "temperature", "stop", "n", "seed", "tools", "tool_choice", "parallel_tool_calls", "logprobs")
    ) | dict.fromkeys(("response_format", "stream_options", "metadata", "horde", "operation_key", "no_such_key"))
    assert parsed(**nulls) == parsed()


@pytest.mark.parametrize(
    "body",
    [
        {"zzz": 1, "temperature": 9},
        {"zzz": 1, "messages": None},
    ],
)
def test_a_missing_model_is_told_before_anything_else(body: dict[str, Any]) -> None:
    with pytest.raises(ContractRefusal, match=NO_MODEL):
        parse_chat_request(body, Face.NATIVE)


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"zzz": 1, "messages": None}, "messages"),
        ({"temperature": 9, "zzz": 1}, "zzz"),
        ({"temperature": 9, "messages": []}, "messages"),
        ({"temperature": 9, "tools": 5}, "tools"),
        ({"tool_choice": 5, "tools": [5]}, "tools[0]"),
        ({"temperature": 9, "max_completion_tokens": 0}, "max_completion_tokens"),
        ({"max_tokens": 0, "response_format": 5}, "response_format"),
        ({"max_tokens": 0, "temperature": 9}, "temperature"),
        ({"stop": 5, "reasoning_effort": 5}, "reasoning_effort"),
        ({"metadata": 5, "stream": 5}, "stream"),
        ({"horde": 5, "metadata": 5}, "metadata"),
    ],
)
def test_one_fault_is_told_in_openais_order_of_checks(refused: Any, members: dict[str, Any], param: str) -> None:
    assert refused(**members)[1] == param
