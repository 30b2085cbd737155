"""Which native root is asked first: all in turn, but those last that gave no answer lately."""

import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_REST_SECONDS = 1.0
LONGEST_REST_SECONDS = 30.0
"""A root that stays dead is asked once in so long, which costs one call its time to connect."""


@dataclass(slots=True)
class _Rest:
    seconds: float
    until: float
    is_tried: bool = False


class Roots:
    """The roots of a front, with a memory of the dead ones.

    A root that gave no answer rests, twice as long each time; then one call tries it. While
    all rest they are asked as if none did.
    """

    def __init__(self, urls: tuple[str, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self._urls = urls
        self._clock = clock
        self._turn = 0
        self._resting: dict[str, _Rest] = {}

    def in_turn(self) -> tuple[str, ...]:
        """Every root once: those that answer in turn, then those that rest."""
        self._turn = (self._turn + 1) % len(self._urls)
        ordered = self._urls[self._turn :] + self._urls[: self._turn]
        if not self._resting:
            return ordered
        now = self._clock()
        resting = [root for root in ordered if root in self._resting and self._resting[root].until > now]
        awake = [root for root in ordered if root not in resting]
        if awake and (rest := self._resting.get(awake[0])) is not None:
            # This call tries it; those that come meanwhile do not wait for it too.
            rest.until, rest.is_tried = now + rest.seconds, True
        return (*awake, *resting)

    def failed(self, root: str) -> None:
        """It gave no answer."""
        rest = self._resting.get(root)
        if rest is None:
            self._resting[root] = _Rest(FIRST_REST_SECONDS, self._clock() + FIRST_REST_SECONDS)
        elif rest.is_tried:
            seconds = min(2 * rest.seconds, LONGEST_REST_SECONDS)
            self._resting[root] = _Rest(seconds, self._clock() + seconds)

    def answered(self, root: str) -> None:
        """It answered, whatever it said."""
        self._resting.pop(root, None)

    @property
    def resting(self) -> int:
        """How many rest."""
        return len(self._resting)
