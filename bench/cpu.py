"""CPU time: of a horde's processes, by their names in the Procfile, with children and services; and of fixed work."""

import contextlib
import json
import os
import statistics
import time
from collections.abc import Mapping

import psutil

from tests.support.horde import HordeProcesses

WORK = [{"number": number, "text": "Hello, horde. " * 8, "flags": [True, None, 0.5]} for number in range(100)]
WORK_ROUNDS, WORK_TIMES = 20, 5


def used_by(horde: HordeProcesses) -> dict[str, float]:
    """CPU seconds of each process and service so far; `bench` is this process."""
    services = {service.name: service.pid for service in (horde.services.postgres, horde.services.redis)}
    roots = {name: process.pid for name, process in horde.running.items()} | services | {"bench": os.getpid()}
    return {name: _of_tree(pid) for name, pid in roots.items() if pid is not None}


def spent_since(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """CPU seconds between two looks, most first."""
    spent = {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def fixed_work_ms() -> float:
    """How much CPU time a piece of work takes that is always the same, in milliseconds: how fast the machine is now."""
    return statistics.median(_time_of_work() for _ in range(WORK_TIMES))


def _time_of_work() -> float:
    began = time.thread_time()
    for _ in range(WORK_ROUNDS):
        json.loads(json.dumps(WORK))
    return 1000 * (time.thread_time() - began)


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
