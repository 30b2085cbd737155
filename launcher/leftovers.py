"""Finding and ending what still runs from a home after its launcher or its supervisor was killed.

A process belongs to a home when its environment carries the home's marker.
PostgreSQL's children write over their environment, so its processes are known by
the directory they work in.
"""

import contextlib
import signal
from pathlib import Path

import psutil

from launcher.errors import LauncherError
from launcher.program import MARKER

GRACE_SECONDS = 10


def find_leftovers(home: Path) -> list[psutil.Process]:
    """Every process that belongs to this home, the caller and its ancestors excepted."""
    myself = psutil.Process()
    spared = {myself.pid, *(parent.pid for parent in myself.parents())}
    return [process for process in psutil.process_iter() if process.pid not in spared and _belongs(process, home)]


def end_leftovers(home: Path) -> int:
    """End every process that belongs to this home, and return how many there were.

    They get SIGTERM (PostgreSQL its fast shutdown) and some seconds, then SIGKILL.
    Supervisors go first, so that they bring nothing back.
    Raises LauncherError when a process does not even end by SIGKILL.
    """
    ended: set[int] = set()
    while found := find_leftovers(home):
        supervisors = [process for process in found if _name(process) == "supervisord"]
        _end(supervisors or found)
        ended.update(process.pid for process in found)
    return len(ended)


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGINT if _name(process) == "postgres" else signal.SIGTERM)
    _, alive = psutil.wait_procs(processes, timeout=GRACE_SECONDS)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    _, immortal = psutil.wait_procs(alive, timeout=GRACE_SECONDS)
    if immortal:
        pids = ", ".join(str(process.pid) for process in immortal)
        raise LauncherError(f"Processes of this horde cannot be ended: {pids}. End them by hand.")


def _belongs(process: psutil.Process, home: Path) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if process.environ().get(MARKER) == str(home):
            return True
        return process.name() == "postgres" and Path(process.cwd()).is_relative_to(home)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""
