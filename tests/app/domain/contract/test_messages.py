"""Roles, content and parts: what is refused, what is dropped and what is stored."""

from typing import Any

import pytest

DATA_URL = "data:image/png;base64,iVBORw0KGgo="


def call(call_id: str = "c", name: str = "f", arguments: object = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def wrong_type(path: str, expected: str, got: str) -> tuple[str, str, str]:
    return f"Invalid type for '{path}': expected {expected}, but got {got} instead.", path, "invalid_type"


def missing(path: str) -> tuple[str, str, str]:
    return f"Missing required parameter: '{path}'.", path, "missing_required_parameter"


def empty(path: str) -> tuple[str, str, str]:
    message = f"Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return message, path, "empty_array"


def no_null(index: int) -> tuple[str, str, str]:
    message = "Invalid value for 'content': expected a string, got null."
    return message, f"messages.[{index}].content", "invalid_request"


def image_for_user_only(path: str, role: str) -> tuple[str, str, str]:
    message = (
        f"Invalid '{path}'. Image URLs are only allowed for messages with role 'user', "
        f"but this message with role '{role}' contains an image URL."
    )
    return message, path, "invalid_value"


IMAGE = {"type": "image_url", "image_url": {"url": DATA_URL}}
CALLS = "messages[0].tool_calls"

REFUSALS: list[tuple[Any, tuple[str, str, str]]] = [
    ([], empty("messages")),
    ("hi", wrong_type("messages", "an array of objects", "a string")),
    ({}, wrong_type("messages", "an array of objects", "an object")),
    (["hi"], wrong_type("messages[0]", "an object", "a string")),
    ([None], wrong_type("messages[0]", "an object", "null")),
    ([{"content": "hi"}], missing("messages[0].role")),
    ([{"role": 1, "content": "hi"}], wrong_type("messages[0].role", "a string", "an integer")),
    (
        [{"role": "bogus", "content": "hi"}],
        (
            (
                "Invalid value: 'bogus'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', "
                "and 'developer'."
            ),
            "messages[0].role",
            "invalid_value",
        ),
    ),
    (
        [{"role": "function", "name": "f", "content": "1"}],
        (
            "Unsupported value: 'messages[0].role' does not support 'function' on the horde.",
            "messages[0].role",
            "UnsupportedChatParameter",
        ),
    ),
    ([user("a"), {"role": "user"}], no_null(1)),
    ([user(None)], no_null(0)),
    ([{"role": "system", "content": None}], no_null(0)),
    ([user(5)], wrong_type("messages[0].content", "one of a string or array of objects", "an integer")),
    ([user({})], wrong_type("messages[0].content", "one of a string or array of objects", "an object")),
    ([user([])], empty("messages[0].content")),
    ([{"role": "assistant", "content": []}], empty("messages[0].content")),
    (
        [user(["a", {"type": "text", "text": "b"}])],
        wrong_type("messages[0].content[0]", "an object", "a string"),
    ),
    ([user([{"text": "a"}])], missing("messages[0].content[0].type")),
    ([user([{"type": "text"}])], missing("messages[0].content[0].text")),
    ([user([{"type": "text", "text": 1}])], wrong_type("messages[0].content[0].text", "a string", "an integer")),
    (
        [user([{"type": "video", "video": "x"}])],
        (
            (
                "Invalid value: 'video'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', "
                "and 'file'."
            ),
            "messages[0].content[0].type",
            "invalid_value",
        ),
    ),
    (
        [user([{"type": "input_audio", "input_audio": {}}])],
        (
            "Unsupported value: 'messages[0].content[0].type' does not support 'input_audio' on the horde.",
            "messages[0].content[0].type",
            "UnsupportedChatParameter",
        ),
    ),
    ([user([{"type": "image_url"}])], missing("messages[0].content[0].image_url")),
    (
        [user([{"type": "image_url", "image_url": DATA_URL}])],
        wrong_type("messages[0].content[0].image_url", "an object", "a string"),
    ),
    ([user([{"type": "image_url", "image_url": {}}])], missing("messages[0].content[0].image_url.url")),
    (
        [user([{"type": "image_url", "image_url": {"url": "ftp://host/a.png"}}])],
        (
            (
                "Invalid 'messages[0].content[0].image_url.url'. Expected a valid URL, but got a value with an invalid "
                "format. Send an http(s) URL or data:image/...;base64,..."
            ),
            "messages[0].content[0].image_url.url",
            "invalid_value",
        ),
    ),
    (
        [user([{"type": "image_url", "image_url": {"url": DATA_URL, "detail": "ultra"}}])],
        (
            "Invalid value: 'ultra'. Supported values are: 'auto', 'low', and 'high'.",
            "messages[0].content[0].image_url.detail",
            "invalid_value",
        ),
    ),
    ([{"role": "system", "content": [IMAGE]}], image_for_user_only("messages[0]", "system")),
    ([user("a"), {"role": "assistant", "content": [IMAGE]}], image_for_user_only("messages[1]", "assistant")),
    (
        [
            {"role": "assistant", "tool_calls": [call()]},
            {"role": "tool", "tool_call_id": "c", "content": [IMAGE]},
        ],
        image_for_user_only("messages[1]", "tool"),
    ),
    ([user("a") | {"name": 5}], wrong_type("messages[0].name", "a string", "an integer")),
    (
        [user("a") | {"name": "two words"}],
        (
            (
                "Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern "
                "'^[^\\s<|\\\\/>]+$'."
            ),
            "messages[0].name",
            "invalid_value",
        ),
    ),
    (
        [user("a") | {"tool_calls": [call()]}],
        ("Unknown parameter: 'messages[0].tool_calls'.", "messages[0].tool_calls", "UnsupportedChatParameter"),
    ),
    (
        [{"role": "assistant", "content": "a", "function_call": {"name": "f", "arguments": "{}"}}],
        (
            "Unsupported parameter: 'messages[0].function_call' is not supported by the horde. Use 'tool_calls'.",
            "messages[0].function_call",
            "UnsupportedChatParameter",
        ),
    ),
    ([{"role": "assistant", "tool_calls": {}}], wrong_type(CALLS, "an array of objects", "an object")),
    ([{"role": "assistant", "tool_calls": ["c"]}], wrong_type(f"{CALLS}[0]", "an object", "a string")),
    ([{"role": "assistant", "tool_calls": [{"type": "function"}]}], missing(f"{CALLS}[0].id")),
    ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], missing(f"{CALLS}[0].type")),
    ([{"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]}], missing(f"{CALLS}[0].function")),
    (
        [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"arguments": "{}"}}]}],
        missing(f"{CALLS}[0].function.name"),
    ),
    (
        [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]}],
        missing(f"{CALLS}[0].function.arguments"),
    ),
    (
        [{"role": "assistant", "tool_calls": [call(arguments={})]}],
        wrong_type(f"{CALLS}[0].function.arguments", "a string", "an object"),
    ),
    (
        [{"role": "assistant", "tool_calls": [call(name="a b")]}],
        (
            (
                f"Invalid '{CALLS}[0].function.name': string does not match pattern. Expected a string that matches "
                "the pattern '^[a-zA-Z0-9_-]+$'."
            ),
            f"{CALLS}[0].function.name",
            "invalid_value",
        ),
    ),
    (
        [{"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {}}]}],
        (
            f"Unsupported value: '{CALLS}[0].type' does not support 'custom' on the horde.",
            f"{CALLS}[0].type",
            "UnsupportedChatParameter",
        ),
    ),
    (
        [user("a")] * 2049,
        (
            (
                "Invalid 'messages': array too long. Expected an array with maximum length 2048, "
                "but got an array with length 2049 instead."
            ),
            "messages",
            "array_above_max_length",
        ),
    ),
]


@pytest.mark.parametrize(("messages", "expected"), REFUSALS, ids=lambda value: str(value)[:60])
def test_a_bad_message_is_refused_in_openais_words(
    refused: Any, messages: object, expected: tuple[str, str, str]
) -> None:
    assert refused(messages=messages) == expected


ACCEPTED: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    (
        "developer becomes system",
        [{"role": "developer", "content": "be brief"}, user("hi")],
        [{"role": "system", "content": "be brief"}, user("hi")],
    ),
    (
        "text parts stay apart and in order",
        [{"role": "system", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}],
        [{"role": "system", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}],
    ),
    (
        "unknown keys of messages and parts are dropped",
        [user([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]) | {"id": "x", "zzz": 1}],
        [user([{"type": "text", "text": "a"}])],
    ),
    (
        "a participant's name stays",
        [user("a") | {"name": "Ann"}],
        [user("a") | {"name": "Ann"}],
    ),
    (
        "the default detail of an image counts as left out",
        [user([{"type": "image_url", "image_url": {"url": DATA_URL, "detail": "auto", "zzz": 1}}])],
        [user([{"type": "image_url", "image_url": {"url": DATA_URL}}])],
    ),
    (
        "another detail of an image stays",
        [user([{"type": "image_url", "image_url": {"url": "https://host/a.png", "detail": "low"}}])],
        [user([{"type": "image_url", "image_url": {"url": "https://host/a.png", "detail": "low"}}])],
    ),
    (
        "an SDK's dumped reply is accepted",
        [
            user("a"),
            {
                "role": "assistant",
                "content": "b",
                "refusal": None,
                "annotations": [],
                "audio": None,
                "function_call": None,
                "tool_calls": None,
                "parsed": {"x": 1},
                "reasoning_content": "because",
                "reasoning": "because",
            },
        ],
        [user("a"), {"role": "assistant", "content": "b"}],
    ),
    (
        "a streamed tool call's bookkeeping is dropped",
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "c",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}", "parsed_arguments": {}},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "name": "f", "content": [{"type": "text", "text": "42"}]},
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [call()]},
            {"role": "tool", "content": [{"type": "text", "text": "42"}], "tool_call_id": "c"},
        ],
    ),
    (
        "a call without a content key is accepted",
        [
            {"role": "assistant", "tool_calls": [call(arguments="not json")]},
            {"role": "tool", "tool_call_id": "c", "content": ""},
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [call(arguments="not json")]},
            {"role": "tool", "content": "", "tool_call_id": "c"},
        ],
    ),
    (
        "empty tool calls count as none",
        [{"role": "assistant", "content": "", "tool_calls": []}, user("a")],
        [{"role": "assistant", "content": ""}, user("a")],
    ),
    (
        "an assistant without content and calls said nothing",
        [{"role": "assistant", "content": None}, {"role": "assistant"}, user("a")],
        [{"role": "assistant", "content": ""}, {"role": "assistant", "content": ""}, user("a")],
    ),
    (
        "a refusal is what the assistant said",
        [
            {"role": "assistant", "content": None, "refusal": "No."},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "Never."}]},
        ],
        [
            {"role": "assistant", "content": "No."},
            {"role": "assistant", "content": [{"type": "text", "text": "Never."}]},
        ],
    ),
    (
        "content, reasoning and calls in one turn are accepted",
        [
            {"role": "assistant", "content": "x", "reasoning_content": "y", "tool_calls": [call()]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
        [
            {"role": "assistant", "content": "x", "tool_calls": [call()]},
            {"role": "tool", "content": "1", "tool_call_id": "c"},
        ],
    ),
]


@pytest.mark.parametrize(("messages", "stored"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_a_good_conversation_is_stored_normalised(
    parsed: Any, messages: list[dict[str, Any]], stored: list[dict[str, Any]]
) -> None:
    assert parsed(messages=messages).messages == stored


@pytest.mark.parametrize("stored", [row[2] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_is_stored_is_stored_again_unchanged(parsed: Any, stored: list[dict[str, Any]]) -> None:
    assert parsed(messages=stored).messages == stored
