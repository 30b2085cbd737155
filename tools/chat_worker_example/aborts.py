"""The hourly limit of aborted jobs, respected from this side (the source, section on prompt fit).

A worker that aborts more than 20 jobs in an hour is put into maintenance. This one
stops to ask for jobs before that, until the oldest of its aborts is an hour old.
"""

from collections import deque


class AbortBudget:
    """Aborts of the last window. Times are seconds of any steady clock."""

    def __init__(self, limit: int, window: float) -> None:
        self._limit = limit
        self._window = window
        self._aborted_at: deque[float] = deque(maxlen=limit + 1)

    def record(self, now: float) -> None:
        """Counts one job that was faulted, or whose reply was refused."""
        self._aborted_at.append(now)

    def wait_seconds(self, now: float, running: int) -> float:
        """How long to ask for no job while so many others are running; 0 when one may be asked for.

        Each running job may still abort, so it takes a place; with many threads they take
        half of the places at most, or a healthy worker could never use them.
        """
        while self._aborted_at and self._aborted_at[0] <= now - self._window:
            self._aborted_at.popleft()
        free = self._limit - len(self._aborted_at) - min(running, self._limit // 2)
        return 0.0 if free > 0 or not self._aborted_at else self._aborted_at[0] + self._window - now
