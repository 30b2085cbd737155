"""Chance in times, so that what happened together is not repeated together."""

import random

# Not for secrets: the system's generator only because it needs no seed per process.
_chance = random.SystemRandom()


def around_one() -> float:
    """A factor between 0.8 and 1.2."""
    return _chance.uniform(0.8, 1.2)


def between(low: float, high: float) -> float:
    """Seconds between two bounds."""
    return _chance.uniform(low, high)
