"""What a worker's owner earns beside the price of a reply: uptime, escrow and trust (wire reference 4.6 and 4.7).

Amounts are millikudos.
"""

from collections.abc import Sequence
from datetime import timedelta

from app.domain.model_sizes import known_billions
from app.domain.pricing import KUDOS

UPTIME_WINDOW = timedelta(seconds=600)
"""A worker that was there this long has earned uptime kudos (4.6)."""

TRUST_AGE = timedelta(days=7)
"""An account younger than this is not trusted by itself (4.7)."""

ESCROW_DIVISOR = 2
"""This part of a generation's reward waits while its owner is not trusted: one half (4.7)."""

_BASE, _FOR_CONTEXT, _CONTEXT_UNIT, _LARGEST_CONTEXT = 25, 15, 1024, 262_144
_SIZE_UNIT, _SMALLEST_FACTOR, _UNKNOWN_FACTOR = 7, 0.25, 0.5
_CENT = KUDOS // 100


def uptime_reward(context_tokens: int, models: Sequence[str]) -> int:
    """Return what one window earns, by the largest context and model that were served in it (details D19)."""
    base = _BASE + _FOR_CONTEXT * min(context_tokens, _LARGEST_CONTEXT) / _CONTEXT_UNIT
    factor = max(_size_factor(model) for model in models)
    return round(base * factor * 100) * _CENT


def _size_factor(model: str) -> float:
    size = known_billions(model)
    return _UNKNOWN_FACTOR if size is None else max(size / _SIZE_UNIT, _SMALLEST_FACTOR)


def earns_trust(*, escrow: int, age: timedelta, suspected: bool, threshold: int) -> bool:
    """Whether an owner has worked enough, for long enough and without suspicion, to be trusted (4.7)."""
    return escrow > threshold and age >= TRUST_AGE and not suspected
