"""Beat's scheduler: Celery's own, which goes on when the clock is put back."""

from datetime import timedelta
from typing import Any

import structlog
from celery.beat import PersistentScheduler

CATCHING_UP = timedelta(days=1)
"""A last run this long ago is longer ago than any period."""

log = structlog.get_logger(__name__)


class SteadyScheduler(PersistentScheduler):
    """Sends everything at once when the last runs lie in the future.

    Celery waits until the clock has caught up with the last run of each task. After a clock that was
    an hour ahead is put right, that is an hour without sweep and settlement. Every task of the horde
    may run at any time, so the next turn of all of them is now.
    """

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; seconds until the next look."""
        if self._is_in_future():
            self._begin_anew()
        return float(super().tick(*args, **kwargs))

    def _is_in_future(self) -> bool:
        now = self.app.now()
        return any(entry.last_run_at is not None and entry.last_run_at > now for entry in self.schedule.values())

    def _begin_anew(self) -> None:
        log.warning("beat.clock_went_back")
        for entry in self.schedule.values():
            entry.last_run_at = self.app.now() - CATCHING_UP
        self._heap = None
