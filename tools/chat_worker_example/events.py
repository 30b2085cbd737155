"""The worker's log: one JSON line an event, never a prompt, a reply or a key."""

import json
import sys
import time


def emit(event: str, **fields: object) -> None:
    """Writes one event to standard output."""
    line = {"time": round(time.time(), 3), "event": event, **fields}
    sys.stdout.write(json.dumps(line, default=str) + "\n")
    sys.stdout.flush()
