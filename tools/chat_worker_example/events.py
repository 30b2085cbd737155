"""The worker's log: one JSON line an event, never a prompt, a reply or a key."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress

Event = dict[str, object]
Listener = Callable[[Event], None]


def line_of(event: Event) -> str:
    """An event as one line."""
    return json.dumps(event, default=str) + "\n"


def _to_standard_output(event: Event) -> None:
    sys.stdout.write(line_of(event))
    sys.stdout.flush()


class Log:
    """Where events go: standard output, unless others listen."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []

    def emit(self, event: str, **fields: object) -> None:
        """Hands one event to all who listen. A full disk or a closed pipe costs lines of the log, and no job."""
        record: Event = {"time": round(time.time(), 3), "event": event, **fields}
        for listener in self.listeners or [_to_standard_output]:
            with suppress(OSError):
                listener(record)


LOG = Log()
emit = LOG.emit
