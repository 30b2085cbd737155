"""What an account may ask for at once, what it holds for it, and where it stands in line.

The constants are those of the wire reference, sections 4.7 to 4.9. Amounts are millikudos.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.pricing import KUDOS

ANONYMOUS_CONCURRENCY = 500
"""Anonymous generations that may wait for the same models (wire reference 4.8)."""

USER_CONCURRENCY = 30
"""Generations of one account that may wait (wire reference 4.8)."""

EDUCATION_CONCURRENCY = 200
"""The same for an account of a school or university (wire reference 4.8)."""

SMALLEST_FREE_CAP, LARGEST_FREE_CAP = 256, 512
_CAP_BASE, _CAP_FOR_THREAD, _CAP_FOR_REQUEST = 512, 5, 0.9

_UPFRONT_DIVISOR = 21
_UPFRONT_FOR_ANY_MODEL = 20 * KUDOS
_CENT = KUDOS // 100

ANONYMOUS_FLOOR = -50 * KUDOS
"""The anonymous account never stands below (wire reference 4.7)."""

REGISTERED_FLOOR = 14 * KUDOS
"""An account made without a login elsewhere never stands below; all of ours are (wire reference 4.7)."""

DOWNGRADED_PRIORITY = -50 * KUDOS
FLAGGED_PRIORITY = -100 * KUDOS
FLAGGED_RICH_ABOVE = 10 * KUDOS
FLAGGED_RICH_DIVISOR = 1000


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How many generations of an account may wait, by what the account is."""

    anonymous: int = ANONYMOUS_CONCURRENCY
    user: int = USER_CONCURRENCY
    education: int = EDUCATION_CONCURRENCY

    def limit(self, *, is_anonymous: bool, education: bool, own: int | None) -> int:
        """Return the limit; an operator's own number for the account wins."""
        if own is not None:
            return own
        if is_anonymous:
            return self.anonymous
        return self.education if education else self.user


def free_cap(threads: int, queued_requests: int) -> int:
    """Return the tokens that may be asked for without holding kudos: fewer when the queue is long (4.8)."""
    cap = _CAP_BASE + _CAP_FOR_THREAD * threads - round(_CAP_FOR_REQUEST * queued_requests)
    return min(max(cap, SMALLEST_FREE_CAP), LARGEST_FREE_CAP)


def free_cap_depends_on_queue(max_length: int) -> bool:
    """Whether the queue decides if this many tokens are free; below and above the cap's range it cannot."""
    return SMALLEST_FREE_CAP < max_length <= LARGEST_FREE_CAP


def queue_that_matters(threads: int) -> int:
    """Return the length from which a longer queue changes the cap no more: nobody need count further."""
    return int((_CAP_BASE - SMALLEST_FREE_CAP + _CAP_FOR_THREAD * threads) / _CAP_FOR_REQUEST) + 1


def upfront_needed(*, max_length: int, cap: int, slow_workers: bool) -> bool:
    """Whether a request must have its kudos held: it is long, or will not take slow workers (4.8)."""
    return max_length > cap or not slow_workers


def upfront_hold(max_length: int, sizes: Iterable[float]) -> int:
    """Return what is held for one generation, to the hundredth of a kudos (4.8).

    It goes by the budget and the largest listed model; a request that takes any model has a flat hold.
    """
    largest = max(sizes, default=None)
    if largest is None:
        return _UPFRONT_FOR_ANY_MODEL
    return round(max_length * largest / _UPFRONT_DIVISOR * 100) * _CENT


def priority(balance: int, *, downgraded: bool = False, flagged: bool = False) -> int:
    """Return what a request's place in line starts from (4.9)."""
    if flagged:
        return balance // FLAGGED_RICH_DIVISOR if balance > FLAGGED_RICH_ABOVE else FLAGGED_PRIORITY
    return DOWNGRADED_PRIORITY if downgraded else balance
