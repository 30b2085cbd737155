"""What a Celery process makes once, for all its threads."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Once(Generic[Made]):
    """A thing that is made at the first call; threads that call meanwhile wait and get the same one."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._making = Lock()
        self.made: Made | None = None
        """What was made, without waiting for it."""

    def __call__(self) -> Made:
        """Return the thing."""
        with self._making:
            if self.made is None:
                self.made = self._make()
            return self.made

    def forget(self) -> None:
        """Make it anew at the next call: after a fork, where the lock may be that of a thread which is not there."""
        self._making = Lock()
        self.made = None
