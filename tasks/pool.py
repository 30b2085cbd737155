"""Celery's pool of children, which puts a successor in the place of each child at once (ADR 0089)."""

from typing import Any

from celery.concurrency import asynpool, prefork

EXIT_SECONDS = 1.0
"""How long the kernel may take to end a process that has closed its files."""


class Children(asynpool.AsynPool):
    """The children of a task process.

    A child's end shows by a pipe that closes. That happens a moment before the child can be waited for, and
    Celery, which looks only once, may find it still alive: the place is then empty until the pool is looked
    through, which is every five seconds.
    """

    def _event_process_exit(self, hub: Any, proc: Any) -> None:
        if proc.exitcode is None:
            proc.join(EXIT_SECONDS)
        super()._event_process_exit(hub, proc)  # type: ignore[misc]  # Celery's stubs leave it out


class TaskPool(prefork.TaskPool):
    """The pool of such children, for `worker_pool`."""

    Pool = Children
