"""A short memory of failure, so that a frozen service costs one caller its time-out and not every caller."""

import time


class Breaker:
    """Open for `rest_seconds` after a failure; callers skip the service meanwhile."""

    def __init__(self, rest_seconds: float) -> None:
        self._rest_seconds = rest_seconds
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the service failed just now and should be left alone."""
        return time.monotonic() < self._open_until

    @property
    def seconds_left(self) -> float:
        """How long it stays open; 0 when it is not."""
        return max(0.0, self._open_until - time.monotonic())

    def failed(self) -> None:
        """Note a failure."""
        self._open_until = time.monotonic() + self._rest_seconds

    def succeeded(self) -> None:
        """Note a success."""
        self._open_until = 0.0
