"""Shortens a conversation to a context by dropping its oldest turns (contract C2, details D1).

A turn is a user's message and all that follows it up to the user's next one, so a tool call
and its answers always fall together. System messages and the latest turn stay.
"""

from collections.abc import Mapping, Sequence

from app.domain.contract.fields import JsonObject
from app.domain.flattening import CHARS_PER_TOKEN, flatten


def fitted(
    messages: list[JsonObject], tools: Sequence[Mapping[str, object]] | None, context_tokens: int
) -> list[JsonObject]:
    """The messages that remain once enough of the oldest turns are dropped.

    When system messages and the latest turn alone are too long, they alone remain: the limits
    gap then says so.
    """
    turns = _turns(messages)
    sizes = [len(flatten([message])) + 1 for message in messages]
    left = sum(sizes) - 1 + (len(flatten([], tools)) + 1 if tools else 0)
    dropped: set[int] = set()
    for turn in turns[:-1]:
        if left <= context_tokens * CHARS_PER_TOKEN:
            break
        dropped.update(turn)
        left -= sum(sizes[index] for index in turn)
    return [message for index, message in enumerate(messages) if index not in dropped]


def _turns(messages: list[JsonObject]) -> list[list[int]]:
    """Indexes of the messages of each turn, oldest first; what stands before the first user's message is one too."""
    turns: list[list[int]] = [[]]
    for index, message in enumerate(messages):
        if message["role"] == "system":
            continue
        if message["role"] == "user":
            turns.append([])
        turns[-1].append(index)
    return [turn for turn in turns if turn]
