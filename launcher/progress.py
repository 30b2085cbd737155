"""What the person at the terminal sees while a horde starts and stops."""

import time


class Progress:
    """Lines with the seconds since the start in front."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        """Show one step."""
        print(f"[{time.monotonic() - self._started:5.1f} s] {text}", flush=True)
