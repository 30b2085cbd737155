"""The worker as on a system that is not POSIX: what only POSIX has is taken away before it starts.

    python tests/tools/chat_worker_example/without_posix.py [--modules]

Run in the folder that holds the package, with the worker's own arguments; `--modules` only
imports every module of the package, by name, and prints each.
"""

import asyncio
import importlib
import os
import pkgutil
import signal
import sys
from pathlib import Path
from typing import NoReturn

import aiohttp
import rich.live

MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
OS = ("fork", "forkpty", "getuid", "geteuid", "getpgid", "killpg", "sched_getaffinity", "setsid", "uname", "wait")
SIGNALS = ("SIGALRM", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "pthread_sigmask", "sigwait")
LOADED_FIRST = (aiohttp, rich.live)
"""What the package stands on, and all of the standard library that it loads, work on every system."""


def no_signal_handler(*_: object) -> NoReturn:
    """As the event loop of Windows answers."""
    raise NotImplementedError


def take_away() -> None:
    """Removes modules and names; importing one fails, reading one fails."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in ((os, OS), (signal, SIGNALS)):
        for name in names:
            delattr(module, name)
    setattr(asyncio.SelectorEventLoop, "add_signal_handler", no_signal_handler)  # noqa: B010 - a method is no variable


def main() -> int:
    """Imports every module, or runs the worker."""
    sys.path.insert(0, str(Path.cwd()))
    take_away()
    package = importlib.import_module("chat_worker_example")
    if sys.argv[1:] == ["--modules"]:
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"chat_worker_example.{module.name}")
            sys.stdout.write(module.name + "\n")
        return 0
    code: int = importlib.import_module("chat_worker_example.__main__").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
