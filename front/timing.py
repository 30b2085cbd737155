"""When a waiting request is looked at again (front F1, F2, details D4). Pure: the clock's reading comes in."""

from dataclasses import dataclass

from front.standing import Standing

FAILED_READ_SECONDS = (0.5, 1.0, 2.0, 4.0)
"""Pauses after status reads that failed; the poll takes over after the last one."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the front waits for what."""

    deadline_seconds: float
    grace_seconds: float
    poll_seconds: float


class WaitClock:
    """One request's times, in seconds of a monotonic clock."""

    __slots__ = ("_failures", "_in_vain_since", "_patience", "deadline", "next_poll")

    def __init__(self, patience: Patience, now: float) -> None:
        self._patience = patience
        self.deadline = now + patience.deadline_seconds
        self.next_poll = now + patience.poll_seconds
        self._in_vain_since: float | None = None
        self._failures = 0

    def saw(self, standing: Standing, now: float, jitter: float) -> None:
        """A status was read. `jitter` is a factor around 1."""
        self._failures = 0
        self.next_poll = now + self._patience.poll_seconds * jitter
        if not standing.waits_in_vain:
            self._in_vain_since = None
        elif self._in_vain_since is None:
            self._in_vain_since = now

    def missed(self, now: float, jitter: float) -> None:
        """A status could not be read."""
        steps = FAILED_READ_SECONDS
        pause = steps[self._failures] if self._failures < len(steps) else self._patience.poll_seconds
        self._failures += 1
        self.next_poll = now + pause * jitter

    def grace_is_over(self, now: float) -> bool:
        """Whether the request is known to have been impossible for the whole availability grace."""
        if self._in_vain_since is None or self._failures:
            return False
        return now >= self._in_vain_since + self._patience.grace_seconds

    def deadline_is_over(self, now: float) -> bool:
        """Whether the client's time is up."""
        return now >= self.deadline

    @property
    def is_in_doubt(self) -> bool:
        """Whether the last read failed."""
        return self._failures > 0

    def next_end(self) -> float:
        """When the wait may be over although nothing rings and no poll finds news."""
        if self._in_vain_since is None or self._failures:
            return self.deadline
        return min(self.deadline, self._in_vain_since + self._patience.grace_seconds)
