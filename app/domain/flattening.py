"""A conversation as one text, and its size in tokens by estimate (contract C3, details D8).

Kudos, moderation and the context estimate read it; a worker never does.
"""

from collections.abc import Mapping, Sequence

import orjson

CHARS_PER_TOKEN = 3
"""The one estimate of characters in a token."""


def flatten(messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] | None = None) -> str:
    """One line for each role and text, tool calls and tools as JSON; image parts leave nothing."""
    lines = [f"tools: {_json(tools)}"] if tools else []
    for message in messages:
        lines.extend(f"{message['role']}: {text}" for text in _texts(message))
    return "\n".join(lines)


def estimate_tokens(text: str) -> int:
    """Tokens of a text by its characters, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def _texts(message: Mapping[str, object]) -> list[str]:
    content = message.get("content")
    texts = [content] if isinstance(content, str) else []
    if isinstance(content, list):
        texts = [part["text"] for part in content if part["type"] == "text"]
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        texts.extend(_json(call) for call in calls)
    return texts


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
