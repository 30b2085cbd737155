"""Rescues requests whose images or messages wait longer than they should, a part of the sweep (details D14)."""

from uuid import UUID

from prometheus_client import Counter
from sqlalchemy import text

from app.domain.states import RequestState
from app.domain.task_names import TaskName
from app.services.preparing import fault_preparing, given_up, next_task
from app.services.runtime import Runtime

BATCH = 200
LONG_QUEUE = 500

MEDIA_RESCUED = Counter("horde_media_rescued", "Requests whose images or messages got a new turn or an end.", ["task"])


def rescue_media(runtime: Runtime) -> None:
    """Send again what is due; fault images whose attempts are used up. A long queue has its work before it."""
    backlog = runtime.sender.backlog(TaskName.PREPARE_IMAGES.queue)
    if backlog is None or backlog > LONG_QUEUE:
        return
    with runtime.database.statements() as transaction:
        due = transaction.execute(_DUE, {"limit": BATCH, "rescue": runtime.settings.rescue_after_seconds}).all()
    for row in due:
        used_up = row.attempts >= runtime.settings.image_attempts
        if row.state == RequestState.PREPARING and used_up:
            fault_preparing(runtime, row.request_id, given_up(row.sources, row.attempts))
            MEDIA_RESCUED.labels("none").inc()
        elif row.state == RequestState.PREPARING:
            _send(runtime, next_task(row.sources), row.request_id)
        elif row.state in {RequestState.QUEUED, RequestState.PROCESSING} and not used_up:
            _send(runtime, TaskName.OFFLOAD_MESSAGES, row.request_id)
        else:
            _leave(runtime, row.request_id)


def _send(runtime: Runtime, task: TaskName, request_id: UUID) -> None:
    if runtime.sender.send(task, str(request_id)):
        MEDIA_RESCUED.labels(task.value).inc()


def _leave(runtime: Runtime, request_id: UUID) -> None:
    """Try no more: the request has ended, or its messages go inline for good."""
    with runtime.database.statements() as transaction:
        transaction.execute(_LEAVE, {"id": request_id})


_DUE = text(
    """
    UPDATE request_media m
    SET next_dispatch_at = now() + make_interval(secs => :rescue * power(2, least(m.attempts + m.failures, 4)))
    FROM horde_requests r
    WHERE r.id = m.request_id AND m.request_id IN (
        SELECT request_id FROM request_media WHERE next_dispatch_at < now()
        ORDER BY next_dispatch_at LIMIT :limit FOR UPDATE SKIP LOCKED)
    RETURNING m.request_id, m.attempts, m.sources, r.state
    """
)

_LEAVE = text("UPDATE request_media SET next_dispatch_at = NULL WHERE request_id = :id")
