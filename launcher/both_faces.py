"""Both faces on one machine that gets its requests at one port (details D20).

The front listens where the public comes in; the native API listens on this machine alone, and
the front is told to find it there. When one of them ends, so does the other: a host starts the
pair anew.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping

from config.settings import Settings

LOOPBACK = "127.0.0.1"
GRACE_SECONDS = 5.0
"""For ending beyond the time that open requests get."""

LOST = 1
"""Exit code when one of the two ended by itself."""


def native_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The native API's environment: out of reach of the public."""
    return {**environment, "HORDE_BIND_HOST": LOOPBACK}


def front_environment(environment: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """The front's environment: with the native API beside it as its only root."""
    return {**environment, "NATIVE_URLS": f"http://{LOOPBACK}:{settings.horde_native_port}"}


async def serve_both(settings: Settings) -> int:
    """Run both until a signal comes or one of them ends. The exit code."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    native = await _start("app.server", native_environment(os.environ))
    front = await _start("front.server", front_environment(os.environ, settings))
    waits = [loop.create_task(work) for work in (stop.wait(), native.wait(), front.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    # The front first: what it still finishes needs the native API.
    await _stop(front, settings.drain_seconds + GRACE_SECONDS)
    await _stop(native, GRACE_SECONDS)
    for wait in waits:
        wait.cancel()
    return 0 if stop.is_set() else LOST


async def _start(module: str, environment: Mapping[str, str]) -> Process:
    # A session of its own: a signal to our group must not reach the native API before the front has ended.
    return await asyncio.create_subprocess_exec(sys.executable, "-m", module, env=environment, start_new_session=True)


async def _stop(process: Process, seconds: float) -> None:
    if process.returncode is None:
        process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()
    # Whatever is left of it: a server that was killed leaves its children, and they its port.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
