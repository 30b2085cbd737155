"""A conversation as one text, and its estimated size."""

from typing import Any

import pytest

from app.domain.flattening import estimate_tokens, flatten

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
CALL_JSON = '{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}'
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("messages", "tools", "text"),
    [
        ([{"role": "user", "content": "hi"}], None, "user: hi"),
        (
            [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
            [],
            "system: be brief\nuser: hi",
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}]}],
            None,
            "user: a\nuser: b",
        ),
        ([{"role": "assistant", "content": None, "tool_calls": [CALL]}], None, f"assistant: {CALL_JSON}"),
        (
            [{"role": "assistant", "content": "x", "tool_calls": [CALL]}, {"role": "tool", "content": "1"}],
            None,
            f"assistant: x\nassistant: {CALL_JSON}\ntool: 1",
        ),
        (
            [{"role": "user", "content": "hi"}],
            [{"type": "function", "function": {"name": "f"}}],
            'tools: [{"type":"function","function":{"name":"f"}}]\nuser: hi',
        ),
    ],
)
def test_each_role_and_text_has_its_line(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, text: str
) -> None:
    assert flatten(messages, tools) == text


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (3, 1), (4, 2), (300, 100), (301, 101)])
def test_three_characters_are_a_token_rounded_up(characters: int, tokens: int) -> None:
    assert estimate_tokens("x" * characters) == tokens
