"""How long a job and a request may take (native-api N4)."""

from math import ceil

SLOWEST_TOKENS_PER_SECOND = 4
"""A worker at this speed still delivers in time; slower ones time out."""

SHORTEST_FACTOR = 0.2
LONGEST_FACTOR = 4.0
"""Bounds of what a measured speed makes of a job's time."""

PROMPT_TOKENS_PER_SECOND = 100
"""Prompt processing of a slow machine."""


def job_ttl_seconds(*, max_length: int, context_tokens: int, floor: int) -> int:
    """Return the seconds that a worker gets for a job: reading the prompt, then writing every token asked for."""
    return max(floor, ceil(context_tokens / PROMPT_TOKENS_PER_SECOND) + ceil(max_length / SLOWEST_TOKENS_PER_SECOND))


def ttl_factor(tokens_per_second: float | None) -> float:
    """Return by what a worker's measured speed stretches or shortens a job's time (native-api N4).

    A worker gets twice what its own speed needs; one that was not measured gets the slowest one's time.
    """
    if tokens_per_second is None:
        return 1.0
    needed = 2 * SLOWEST_TOKENS_PER_SECOND / max(tokens_per_second, 0.01)
    return min(max(needed, SHORTEST_FACTOR), LONGEST_FACTOR)


def request_ttl_seconds(*, deadline: int | None, default: int, margin: int) -> int:
    """Return the seconds after which a request expires: its client's deadline and a margin, else the default."""
    return default if deadline is None else deadline + margin
