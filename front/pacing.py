"""The pace at which posted text goes out: evenly until the next post is expected (front F4, ADR 0062). Pure.

Each post is due in full one interval after it came, so pacing never adds more than that;
the rate is the lowest that keeps every due moment. The first letter of a stream is due at once:
whoever waits wants to see that it began. Lengths are in code points, times in
seconds of a monotonic clock.
"""

from collections import deque

FIRST_INTERVAL = 1.0
"""What is expected before two posts were seen: workers post about once a second."""

SHORTEST_INTERVAL = 0.05
LONGEST_INTERVAL = 2.0
"""A longer gap is a pause of the worker, not its rhythm."""

NEWEST_GAP_WEIGHT = 0.3


class Pace:
    """One stream's rhythm and what is due of it."""

    __slots__ = ("_at", "_due", "_last_post", "_position", "_rate", "_taken", "interval")

    def __init__(self) -> None:
        self.interval = FIRST_INTERVAL
        self._last_post: float | None = None
        self._due: deque[tuple[int, float]] = deque()
        self._position = 0.0
        self._taken = 0
        self._rate = 0.0
        self._at = 0.0

    def posted(self, length: int, now: float) -> None:
        """A post of so much text came."""
        self._advance(now)
        if self._last_post is not None:
            gap = min(now - self._last_post, LONGEST_INTERVAL)
            estimate = self.interval + NEWEST_GAP_WEIGHT * (gap - self.interval)
            self.interval = max(SHORTEST_INTERVAL, estimate)
        self._last_post = now
        if length > 0:
            end = self._due[-1][0] if self._due else max(int(self._position), self._taken)
            if end == 0:
                self._position = 1.0
            moment = now + self.interval
            while self._due and self._due[-1][1] >= moment:
                self._due.pop()
            self._due.append((end + length, moment))
            self._rate = self._rate_at(now)

    def due(self, now: float) -> int:
        """How much should be said by now and was not."""
        self._advance(now)
        return max(0, int(self._position + 1e-6) - self._taken)

    def took(self, length: int) -> None:
        """So much was said, which may be more than was due."""
        self._taken += length
        self._position = max(self._position, float(self._taken))

    def forget(self) -> None:
        """What was not said will not be."""
        self._due.clear()
        self._position = float(self._taken)

    def next_moment(self, now: float, step: float) -> float | None:
        """When to say more; None when all is said.

        At least `step` from now, but for a post that is due before and for the first letter of all.
        """
        self._advance(now)
        if not self._due:
            return None
        missing = self._taken + 1 - self._position
        even = now + missing / self._rate if self._rate > 0.0 else now
        return min(max(now + step if self._taken else now, even), self._due[0][1])

    def _advance(self, now: float) -> None:
        """Move to where the stream should be by now."""
        if self._due:
            self._position += self._rate * (now - self._at)
            self._position = min(self._position, float(self._due[-1][0]))
        while self._due and (self._due[0][1] <= now or self._due[0][0] <= self._taken):
            self._position = max(self._position, float(self._due.popleft()[0]))
        self._at = now
        self._rate = self._rate_at(now)

    def _rate_at(self, now: float) -> float:
        return max(((end - self._position) / (moment - now) for end, moment in self._due), default=0.0)
