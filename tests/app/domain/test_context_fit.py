"""Which turns fall when a conversation is too long."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.context_fit import fitted
from app.domain.flattening import estimate_tokens, flatten

Message = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d" * 90}}]


def said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


SYSTEM = said("system", "be brief")
LATE_SYSTEM = said("system", "be kind")
CALL: Message = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
ANSWER: Message = {"role": "tool", "tool_call_id": "c", "content": "42"}
GREETING, FIRST, REPLY = said("assistant", "welcome"), said("user", "one" * 30), said("assistant", "yes" * 30)
SECOND, LATEST, PREFILL = said("user", "two"), said("user", "three"), said("assistant", "well,")
WHOLE = [SYSTEM, GREETING, FIRST, REPLY, LATE_SYSTEM, SECOND, CALL, ANSWER, LATEST, PREFILL]
LEAST = [SYSTEM, LATE_SYSTEM, LATEST, PREFILL]


def tokens(messages: list[Message], tools: list[Message] | None = None) -> int:
    return estimate_tokens(flatten(messages, tools))


@pytest.mark.parametrize(
    "kept",
    [
        WHOLE,
        [SYSTEM, FIRST, REPLY, LATE_SYSTEM, SECOND, CALL, ANSWER, LATEST, PREFILL],
        [SYSTEM, LATE_SYSTEM, SECOND, CALL, ANSWER, LATEST, PREFILL],
        LEAST,
    ],
)
def test_the_oldest_whole_turns_fall_until_the_rest_fits(kept: list[Message]) -> None:
    assert fitted(WHOLE, None, tokens(kept)) == kept


def test_system_messages_and_the_latest_turn_stay_however_long_they_are() -> None:
    assert fitted(WHOLE, None, 1) == LEAST
    assert fitted(WHOLE, None, -100) == LEAST


def test_the_tools_take_their_part_of_the_context() -> None:
    assert fitted(WHOLE, TOOLS, tokens(WHOLE, TOOLS)) == WHOLE
    assert fitted(WHOLE, TOOLS, tokens(WHOLE, TOOLS) - 1) != WHOLE


def test_a_conversation_without_a_user_is_one_turn_and_stays() -> None:
    assert fitted([SYSTEM, GREETING], None, 1) == [SYSTEM, GREETING]


TURNS = st.lists(
    st.sampled_from([[FIRST, REPLY], [SECOND, CALL, ANSWER], [SECOND], [LATE_SYSTEM, FIRST]]), min_size=1, max_size=8
)


@given(TURNS, st.integers(0, 400))
def test_what_remains_fits_or_is_the_least_and_calls_keep_their_answers(
    turns: list[list[Message]], target: int
) -> None:
    messages = [message for turn in turns for message in turn]
    kept = fitted(messages, None, target)
    least = fitted(messages, None, -1)
    assert tokens(kept) <= target or kept == least
    assert kept.count(CALL) == kept.count(ANSWER)
    remaining = iter(messages)
    assert all(message in remaining for message in kept), "the order is kept"
