"""`horde-worker`, or `python -m chat_worker_example`: the worker in the foreground, and its commands."""

import asyncio
import io
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from .commands import check, earnings, test, why
from .config import BACKEND, HORDE, WORKER, ConfigError, WorkerConfig, load_config
from .output import outputs
from .worker import EXIT_CONFIGURATION, run_worker

EXIT_INTERRUPTED = 130
"""Ctrl-C during a command; a worker stops in order, with 0."""


class Command(NamedTuple):
    """What a word on the command line does, and which settings it needs."""

    act: Callable[[WorkerConfig], Coroutine[Any, Any, int]]
    needs: frozenset[str]


COMMANDS = {
    "run": Command(run_worker, WORKER),
    "check": Command(check, BACKEND),
    "why": Command(why, WORKER),
    "test": Command(test, HORDE | {"model_name"}),
    "earnings": Command(earnings, HORDE),
}


def main() -> int:
    """Runs one command and returns its exit code: 2 when the configuration has to change."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A reply may hold characters that the terminal, as of Windows, cannot show.
        sys.stdout.reconfigure(errors="replace")
    arguments = sys.argv[1:]
    name = arguments.pop(0) if arguments and arguments[0] in COMMANDS else "run"
    command = COMMANDS[name]
    try:
        config = load_config(arguments, os.environ, command.needs)
        with outputs(config) if name == "run" else outputs(WorkerConfig()):
            return asyncio.run(command.act(config))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CONFIGURATION
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
