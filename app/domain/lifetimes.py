"""How long a job and a request may take (native-api N4)."""

from math import ceil

SLOWEST_TOKENS_PER_SECOND = 4
"""A worker at this speed still delivers in time; slower ones time out."""

PROMPT_TOKENS_PER_SECOND = 100
"""Prompt processing of a slow machine."""


def job_ttl_seconds(*, max_length: int, context_tokens: int, floor: int) -> int:
    """Return the seconds that a worker gets for a job: reading the prompt, then writing every token asked for."""
    return max(floor, ceil(context_tokens / PROMPT_TOKENS_PER_SECOND) + ceil(max_length / SLOWEST_TOKENS_PER_SECOND))


def request_ttl_seconds(*, deadline: int | None, default: int, margin: int) -> int:
    """Return the seconds after which a request expires: its client's deadline and a margin, else the default."""
    return default if deadline is None else deadline + margin
