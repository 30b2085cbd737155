"""Taking a horde down, also one whose launcher or supervisor was killed."""

import contextlib
import os
import signal

import psutil

from launcher.errors import LauncherError
from launcher.home import Home
from launcher.leftovers import end_leftovers
from launcher.supervision import Supervisor

LAUNCHER_SECONDS = 150
"""Longer than the launcher's own orderly stop takes at worst."""


def stop_everything(home: Home) -> int:
    """Stop all that runs from a home: in order where the supervisor lives, by signal where it does not.

    Returns how many processes had to be ended without their supervisor.
    """
    Supervisor(home).shut_down()
    home.detached_mark.unlink(missing_ok=True)
    ended = end_leftovers(home.path)
    home.remove_socket()
    return ended


def down(home: Home) -> bool:
    """Stop a horde; says whether there was anything to stop.

    A launcher that still holds the home is asked to stop it itself.
    Raises LauncherError when that launcher does not end.
    """
    if not home.run.exists():
        return False
    launcher = home.launcher_pid()
    if launcher is not None:
        _end_launcher(launcher)
    running = Supervisor(home).pid() is not None
    return stop_everything(home) > 0 or running or launcher is not None


def _end_launcher(pid: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        process = psutil.Process(pid)
        os.kill(pid, signal.SIGTERM)
        try:
            process.wait(LAUNCHER_SECONDS)
        except psutil.TimeoutExpired:
            raise LauncherError(f"The launcher (process {pid}) does not stop: end it by hand.") from None
