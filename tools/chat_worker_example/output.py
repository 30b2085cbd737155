"""Where a run's events go: a log file or standard output, and the live view."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import RawIOBase

from .config import ConfigError, WorkerConfig
from .events import LOG, Event, line_of


def _add_to(file: RawIOBase, event: Event) -> None:
    file.write(line_of(event).encode())


@contextmanager
def outputs(config: WorkerConfig) -> Iterator[None]:
    """Connects the log as configured. With the view and no log file, events are shown and not kept.

    Raises ConfigError when the view is asked for and `rich` is not installed.
    """
    with ExitStack() as stack:
        if config.log_file is not None:
            # Without a buffer, so that a line that could not be written is not tried again at the end.
            LOG.listeners.append(partial(_add_to, stack.enter_context(config.log_file.open("ab", buffering=0))))
        if config.view:
            try:
                view = importlib.import_module(".view", __package__)
            except ImportError:
                raise ConfigError(["VIEW (--view): needs rich; pip install rich"]) from None
            LOG.listeners.append(stack.enter_context(view.live_view(sys.stdout)))
        stack.callback(LOG.listeners.clear)
        yield
