"""A Celery application with the horde's own settings and one task, which runs until a test lets it go.

`celery --app tests.support.fifo_tasks worker` takes broker and settings from the environment, as
the horde's processes do.
"""

import os
from pathlib import Path

from celery import Celery

from app.domain.task_names import TaskName

NAME = TaskName.VERIFY_GENERATION.value
"""A name that has a queue."""

RETRIES = 2
"""As often as the horde's own task of this name is tried again."""


def application() -> Celery:
    """An application that is set up as the horde's."""
    made = Celery("fifo", set_as_current=False)
    made.config_from_object("celeryconfig")

    @made.task(name=NAME, max_retries=RETRIES, default_retry_delay=1)
    def wait(fifo: str) -> None:
        with _begun(Path(fifo)).open("a") as noted:
            noted.write(f"{os.getpid()}\n")
        # Opening blocks until the test opens the other end.
        with Path(fifo).open("rb"):
            return

    return made


def _begun(fifo: Path) -> Path:
    return fifo.with_suffix(".begun")


def begun(fifo: Path) -> list[int]:
    """The processes that began the task of this fifo, in turn."""
    noted = _begun(fifo)
    return [int(line) for line in noted.read_text().split()] if noted.exists() else []


def let_go(fifo: Path) -> bool:
    """End the task that waits at this fifo; False while there is none."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def __getattr__(name: str) -> Celery:
    """The application of the process that Celery's command starts."""
    if name in {"app", "celery"}:
        return application()
    raise AttributeError(name)
