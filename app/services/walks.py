"""How far each worker has looked through classes that are too long to be looked at whole (details D11).

Only in a class whose sizes straddle a worker's limit can entries be too large for it, and
only there may many of them stand before one that fits. A pop looks at the first of them and,
beside those, at as many where the last pop stopped, so that nothing that fits stays unseen.
"""

from collections.abc import Mapping
from math import inf, nextafter
from uuid import UUID

_REMEMBERED_WORKERS = 2_000
"""Workers whose looks a process remembers; the longest unseen begins anew."""


class Walks:
    """This process's memory of where to go on: a sort key by worker and class."""

    def __init__(self) -> None:
        self._reached: dict[UUID, dict[int, float]] = {}

    def reached(self, worker_id: UUID, class_id: int) -> float | None:
        """Return where this worker's look goes on; None when it begins at the class's head."""
        return self._reached.get(worker_id, {}).get(class_id)

    def note(self, worker_id: UUID, reached: Mapping[int, float | None]) -> None:
        """Remember how far fruitless looks came; None for one that saw the end of its class."""
        if not reached:
            return
        before = self._reached.pop(worker_id, {})
        known = before | {class_id: _onward(before.get(class_id), key) for class_id, key in reached.items()}
        while len(self._reached) >= _REMEMBERED_WORKERS:
            self._reached.pop(next(iter(self._reached)), None)
        self._reached[worker_id] = {class_id: key for class_id, key in known.items() if key is not None}


def _onward(before: float | None, key: float | None) -> float | None:
    """Return where to go on: past a key that more entries share than one look sees."""
    return nextafter(key, inf) if key is not None and key == before else key
