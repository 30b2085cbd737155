"""The worker's log: one JSON line an event, never a prompt, a reply or a key."""

import json
import sys
import time
from collections.abc import Callable
from typing import TextIO

Event = dict[str, object]
Listener = Callable[[Event], None]


def write_line(stream: TextIO, event: Event) -> None:
    """Writes an event as one line."""
    stream.write(json.dumps(event, default=str) + "\n")
    stream.flush()


class Log:
    """Where events go: standard output, unless others listen."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []

    def emit(self, event: str, **fields: object) -> None:
        """Hands one event to all who listen."""
        record: Event = {"time": round(time.time(), 3), "event": event, **fields}
        if not self.listeners:
            write_line(sys.stdout, record)
        for listener in self.listeners:
            listener(record)


LOG = Log()
emit = LOG.emit
