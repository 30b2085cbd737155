"""Waiting for a condition inside an event loop."""

import asyncio
import time
from collections.abc import Callable


async def eventually(condition: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    """Wait until the condition holds; fail with `what` when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        await asyncio.sleep(0.005)
