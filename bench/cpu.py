"""CPU time of a horde's processes, by the name each has in the Procfile, with its children and its services."""

import contextlib
import os
from collections.abc import Mapping

import psutil

from tests.support.horde import HordeProcesses


def used_by(horde: HordeProcesses) -> dict[str, float]:
    """CPU seconds of each process and service so far; `bench` is this process."""
    services = {service.name: service.pid for service in (horde.services.postgres, horde.services.redis)}
    roots = {name: process.pid for name, process in horde.running.items()} | services | {"bench": os.getpid()}
    return {name: _of_tree(pid) for name, pid in roots.items() if pid is not None}


def spent_since(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """CPU seconds between two looks, most first."""
    spent = {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def _of_tree(pid: int) -> float:
    """Of a process and, unless it is this one, of everything that it started and that still runs."""
    root = psutil.Process(pid)
    members = [root] if pid == os.getpid() else [root, *root.children(recursive=True)]
    total = 0.0
    for member in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = member.cpu_times()
            total += times.user + times.system
    return total
