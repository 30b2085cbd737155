"""Every task's turn: how long it took, how it ended, and which call it came from (operations O4)."""

import time
from typing import Any

import structlog
from celery.signals import task_postrun, task_prerun
from prometheus_client import Histogram

from app.adapters.task_sender import CALL_HEADER

TASK_SECONDS = Histogram(
    "horde_task_seconds",
    "Time that a task ran.",
    ["task", "outcome"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)

_begun: dict[str, float] = {}
"""When each running task of this process began; a process with threads has several."""


@task_prerun.connect
def _begin(task_id: str, task: Any, **_: object) -> None:
    _begun[task_id] = time.perf_counter()
    call_id = task.request.get(CALL_HEADER)
    if call_id:
        structlog.contextvars.bind_contextvars(call_id=call_id)


@task_postrun.connect
def _end(task_id: str, task: Any, state: str | None = None, **_: object) -> None:
    structlog.contextvars.unbind_contextvars("call_id")
    started = _begun.pop(task_id, None)
    if started is not None:
        TASK_SECONDS.labels(task.name, str(state or "unknown").lower()).observe(time.perf_counter() - started)
