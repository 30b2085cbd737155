"""A small file that tells a supervisor how the worker is doing."""

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from .events import emit
from .jobs import JobEnd


class Health:
    """The worker's state and counts, kept in a file when one is configured.

    States: `waiting_for_backend`, `ready`, `resting`, `horde_unreachable`, `refused`, `backend_down`, `stopping`.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._state = ""
        self._written_at = 0.0
        self._failing = False
        self.done = 0
        self.failed = 0
        self.unwanted = 0
        self.kudos = 0.0
        self.skipped: dict[str, object] = {}

    def count(self, end: JobEnd) -> None:
        """Counts one job that has ended."""
        self.done += end.event == "job_done"
        self.unwanted += end.event in {"job_cancelled", "job_ended"}
        self.failed += end.event in {"job_faulted", "job_refused", "job_lost"}
        self.kudos += (end.receipt.reward or 0.0) if end.receipt else 0.0

    def report(self, state: str) -> None:
        """Writes the state, an unchanged one at most once a second.

        The file is replaced whole, so a reader never sees half of it. One that cannot be written
        is said once, and stops no job: a disk may be full, or on Windows a reader may hold it open.
        """
        now = time.time()
        if self._path is None or (state == self._state and 0 <= now - self._written_at < 1):
            return
        self._state, self._written_at = state, now
        content = {
            "state": state,
            "updated_at": now,
            "done": self.done,
            "failed": self.failed,
            "unwanted": self.unwanted,
            "kudos": round(self.kudos, 2),
            "skipped": self.skipped,
        }
        try:
            self._replace(self._path, json.dumps(content) + "\n")
        except OSError as error:
            if not self._failing:
                emit("health_file_failed", reason=type(error).__name__)
            self._failing = True
        else:
            self._failing = False

    def _replace(self, path: Path, text: str) -> None:
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)

    def remove(self) -> None:
        """Takes the file away: a worker that has ended is in no state."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
