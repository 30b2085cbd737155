"""What the probe asks, and how it judges the answers. Pure functions."""

import json

from .chat import Json

CONVERSATION: list[Json] = [
    {"role": "user", "content": "Name a fruit.\n\n  One word, s'il vous plaît 🍐"},
    {"role": "assistant", "content": "Pear 🍐"},
    {"role": "user", "content": "Another one?"},
]
"""The conversation that counters are checked on.

It has no system message, because some templates put in one of their own only then,
and that belongs to the template's fixed part. Line breaks, spaces and characters of
several bytes are what tokenizers treat differently.
"""

SMALL_TALK: list[Json] = [{"role": "user", "content": "Answer with one word: hello"}]
"""A conversation that calls for neither JSON nor a tool: what comes all the same was forced."""

PROBE_TOOL: Json = {
    "type": "function",
    "function": {
        "name": "record_harvest",
        "description": "Records how many crates of fruit were picked.",
        "parameters": {
            "type": "object",
            "properties": {"crates": {"type": "integer"}},
            "required": ["crates"],
            "additionalProperties": False,
        },
    },
}
ONLY_VALUE = "k7f3q"
PROBE_SCHEMA: Json = {
    "type": "object",
    "properties": {"token": {"type": "string", "enum": [ONLY_VALUE]}},
    "required": ["token"],
    "additionalProperties": False,
}
ONLY_INSTANCE = f'{{"token":"{ONLY_VALUE}"}}'
"""What the schema allows, spaces apart: nothing else, and nothing that small talk would bring about."""

PICTURE = (
    "data:image/jpeg;base64,"
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWG"
    "kJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk"
    "pKSkpKSkpKSkpKSkpKT/wAARCAAgACADASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAA"
    "AAAAAAAA/8QAFgEBAQEAAAAAAAAAAAAAAAAAAAQF/8QAFBEBAAAAAAAAAAAAAAAAAAAAAP/aAAwDAQACEQMRAD8AhATtgAAA"
    "AAB//9k="
)
"""A red square of 32 by 32 pixels."""


def too_long_for(context: int) -> list[Json]:
    """A conversation of more tokens than a context holds: a word is a token at least.

    It has many turns, because some backends trim by whole messages; what they keep of it
    is then close to the context that they really have.
    """
    turns = 41
    text = "apple " * (context // 32 + 1)
    return [{"role": ("user", "assistant")[turn % 2], "content": text} for turn in range(turns)]


def object_in(content: object) -> Json | None:
    """The JSON object that a content is, or None."""
    try:
        value = json.loads(content) if isinstance(content, str) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_json_object(reply: Json) -> bool:
    """Whether the reply is a JSON object, or was one as far as the token limit let it come.

    A small model may not find an end; what is complete of the object then has to parse.
    """
    content = reply["message"]["content"]
    if object_in(content) is not None:
        return True
    if reply["finish_reason"] != "length" or not isinstance(content, str):
        return False
    cuts = [position for position, character in enumerate(content) if character == ","] + [len(content)]
    return any(object_in(content[:cut] + "}") is not None for cut in reversed(cuts))


def is_only_instance(reply: Json) -> bool:
    """Whether the reply is the one instance of PROBE_SCHEMA, or its beginning where the token limit cut it."""
    compact = "".join(str(reply["message"]["content"] or "").split())
    cut = reply["finish_reason"] == "length" and compact != "" and ONLY_INSTANCE.startswith(compact)
    return cut or compact == ONLY_INSTANCE


def is_probe_call(reply: Json) -> bool:
    """Whether the reply calls the probe's tool with arguments of the right shape.

    A small model may go on to call it again; a call that the token limit cut shows nothing either way.
    """
    calls = reply["message"]["tool_calls"] or []
    if reply["finish_reason"] == "length" and len(calls) > 1:
        calls = calls[:-1]
    functions = [call["function"] for call in calls]
    return bool(functions) and all(
        function["name"] == PROBE_TOOL["function"]["name"]
        and isinstance((object_in(function["arguments"]) or {}).get("crates"), int)
        for function in functions
    )
