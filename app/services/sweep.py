"""Rescues rows that wait longer than they should: the row's state is the outbox (architecture A4, details D14).

One query a waiting state, each bounded and skipping locked rows:

| waiting                     | rescue                                                        |
|-----------------------------|---------------------------------------------------------------|
| generation `submitted`      | verification is dispatched again; terminal after the cap      |
| generation `verified`       | settlement is kicked again                                    |
| generation `leased`, late   | timed out; its request goes to another worker                 |
| generation `leased`, silent | the same, when its worker posted before and stopped (D15)     |
| request open, past its life | expired with its jobs, unless a reply is being verified       |
| request with media that is due | see `media_rescue`                                         |
| anything of a banned account   | see `bans`                                                 |
"""

from uuid import UUID

import structlog
from prometheus_client import Counter, Gauge
from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.redis_keys import ChatEvent
from app.domain.states import GenerationState, RequestState
from app.domain.task_names import TaskName
from app.domain.verdict_route import is_judged_by_schema, verification_task
from app.services.aborts import note_heartbeats
from app.services.bans import end_banned
from app.services.faults import Failure, end_request, fail_generation
from app.services.media_rescue import rescue_media
from app.services.runtime import Runtime
from app.services.schema_faults import fault_for_schema
from config.metrics import begin_at_zero

BATCH = 200
OPERATION_KEY_HOURS = 24
"""Operation keys are kept this long (details D1)."""

LONG_QUEUE = 500
"""A queue this long has its work before it; sending more copies would only make it longer."""

WAITING = Gauge(
    "horde_rows_waiting",
    "Rows that wait in a transitional state past their time.",
    ["state"],
    # Any child of a task process may run the sweep: the last count holds, not the sum of all that were.
    multiprocess_mode="mostrecent",
)
RESCUED = Counter("horde_rows_rescued", "Rows that the sweep gave a new turn or an end.", ["state"])
begin_at_zero(
    RESCUED, GenerationState.SUBMITTED, GenerationState.VERIFIED, GenerationState.LEASED, "silent", RequestState.EXPIRED
)

log = structlog.get_logger(__name__)


def sweep(runtime: Runtime) -> None:
    """Run every rescue once, after noting an absence of the horde, so that no worker is blamed for it."""
    note_heartbeats(runtime)
    _rescue_submitted(runtime)
    _rescue_verified(runtime)
    _time_out_leased(runtime)
    _time_out_silent(runtime)
    _expire_requests(runtime)
    rescue_media(runtime)
    end_banned(runtime)


def _rescue_submitted(runtime: Runtime) -> None:
    ready = [task for task in (TaskName.VERIFY_GENERATION, TaskName.VERIFY_BY_SCHEMA) if _takes_more(runtime, task)]
    if not ready:
        return
    with runtime.database.statements() as transaction:
        due = transaction.execute(
            _DUE_SUBMITTED, {"limit": BATCH, "rescue": runtime.settings.rescue_after_seconds}
        ).all()
    WAITING.labels(GenerationState.SUBMITTED).set(len(due))
    for row in due:
        task = verification_task(row.features, context_tokens=row.context_tokens, reply_characters=row.reply_characters)
        if is_judged_by_schema(row.features) and row.attempts >= runtime.settings.schema_attempts:
            fault_for_schema(runtime, row.id)
        elif row.attempts >= runtime.settings.rescue_attempts:
            _give_up(runtime, row.id)
        elif task in ready and runtime.sender.send(task, str(row.id)):
            RESCUED.labels(GenerationState.SUBMITTED).inc()


def _takes_more(runtime: Runtime, task: TaskName) -> bool:
    """Whether a task's queue can be reached and is not long. If not, nothing is counted against the rows."""
    backlog = runtime.sender.backlog(task.queue)
    return backlog is not None and backlog <= LONG_QUEUE


def _give_up(runtime: Runtime, generation_id: UUID) -> None:
    """End a generation whose verification was begun too often and never finished."""
    why = Failure(GenerationState.FAULTED, "verification_failed")
    with runtime.database.transaction() as transaction:
        fail_generation(runtime, transaction, generation_id, why)
    log.error("verification.gave_up", generation_id=str(generation_id))


def _rescue_verified(runtime: Runtime) -> None:
    with runtime.database.statements() as transaction:
        waiting = int(
            transaction.execute(_COUNT_VERIFIED, {"rescue": runtime.settings.rescue_after_seconds}).scalar_one()
        )
    WAITING.labels(GenerationState.VERIFIED).set(waiting)
    if waiting and runtime.sender.send(TaskName.SETTLE_BATCH):
        RESCUED.labels(GenerationState.VERIFIED).inc(waiting)


def _time_out_leased(runtime: Runtime) -> None:
    with runtime.database.statements() as transaction:
        due = transaction.execute(_DUE_LEASED, {"limit": BATCH}).all()
    WAITING.labels(GenerationState.LEASED).set(len(due))
    for row in due:
        why = Failure(GenerationState.TIMED_OUT, "timed_out")
        with runtime.database.transaction() as transaction:
            if fail_generation(runtime, transaction, row.id, why):
                RESCUED.labels(GenerationState.LEASED).inc()


def _time_out_silent(runtime: Runtime) -> None:
    """Take jobs from workers that posted progress and then fell silent (details D15)."""
    why = Failure(GenerationState.TIMED_OUT, "silent")
    for generation_id in runtime.leases.silent(BATCH):
        with runtime.database.transaction() as transaction:
            if fail_generation(runtime, transaction, generation_id, why):
                RESCUED.labels("silent").inc()
        runtime.leases.forget(generation_id)


def _expire_requests(runtime: Runtime) -> None:
    fault = {
        "rc": "RequestExpired",
        "message": "No worker delivered before the request's time was over.",
        "param": None,
    }
    with runtime.database.statements() as transaction:
        due = transaction.execute(_DUE_REQUESTS, {"limit": BATCH}).scalars().all()
    for request_id in due:
        with runtime.database.transaction() as transaction:
            if transaction.execute(_STILL_OPEN, {"id": request_id}).first() is None:
                continue
            end_request(runtime, transaction, request_id, RequestState.EXPIRED, fault=fault)
            _end_jobs(runtime, transaction, request_id)
        RESCUED.labels(RequestState.EXPIRED).inc()


def _end_jobs(runtime: Runtime, transaction: Transaction, request_id: UUID) -> None:
    """End the jobs of a locked request that has expired: their replies come too late, which no worker is blamed for."""
    why = Failure(GenerationState.TIMED_OUT, "request_expired")
    for generation_id in transaction.execute(_STILL_RUNNING, {"id": request_id}).scalars().all():
        fail_generation(runtime, transaction, generation_id, why)


def publish_ended(runtime: Runtime) -> int:
    """Ring again for every request that ended just now, in case the first ring was lost; return how many."""
    window = 2 * runtime.settings.sweep_seconds
    with runtime.database.statements() as transaction:
        ended = transaction.execute(_JUST_ENDED, {"window": window, "limit": 10 * BATCH}).scalars().all()
    runtime.bus.publish_chats(ended, ChatEvent.DONE)
    return len(ended)


def erase_bodies(runtime: Runtime) -> int:
    """Erase conversations and replies of requests that ended long enough ago; return of how many (details D10)."""
    with runtime.database.statements() as transaction:
        erased = transaction.execute(
            _ERASE, {"limit": 10 * BATCH, "retention": runtime.settings.body_retention_seconds}
        ).all()
        transaction.execute(_FORGET_KEYS, {"hours": OPERATION_KEY_HOURS})
    return len(erased)


def vacuum_queue(runtime: Runtime) -> None:
    """Clear the dead entries at the head of the hot queue: they are what slows a claim (details D11)."""
    with runtime.database.statements() as transaction:
        transaction.execute(text("VACUUM (ANALYZE) queue_entries"))


_DUE_SUBMITTED = text(
    """
    UPDATE generations g SET next_dispatch_at = now() + make_interval(secs => :rescue * power(2, least(g.attempts, 6)))
    FROM horde_requests r, replies y
    WHERE g.id IN (
        SELECT id FROM generations WHERE state = 'submitted' AND next_dispatch_at < now()
        ORDER BY next_dispatch_at LIMIT :limit FOR UPDATE SKIP LOCKED
    ) AND r.id = g.request_id AND y.generation_id = g.id
    RETURNING g.id, g.attempts, r.context_tokens, r.requirements -> 'features' AS features,
        length(CAST(y.body AS text)) AS reply_characters
    """
)

_COUNT_VERIFIED = text(
    """
    SELECT count(*) FROM (
        SELECT 1 FROM generations
        WHERE state = 'verified' AND next_dispatch_at < now() - make_interval(secs => :rescue) LIMIT 10000
    ) late
    """
)

_DUE_LEASED = text(
    """
    SELECT id FROM generations
    WHERE state = 'leased' AND deadline_at < now() ORDER BY deadline_at LIMIT :limit
    """
)

_DUE_REQUESTS = text(
    """
    SELECT r.id FROM horde_requests r
    WHERE r.ended_at IS NULL AND r.expires_at < now()
    ORDER BY r.expires_at LIMIT :limit
    """
)

_STILL_OPEN = text(
    """
    SELECT 1 FROM horde_requests r
    WHERE r.id = :id AND r.state IN ('preparing', 'queued', 'processing') AND r.expires_at < now()
      AND NOT EXISTS (
          SELECT 1 FROM generations g WHERE g.request_id = r.id AND g.state IN ('submitted', 'verified'))
    FOR UPDATE OF r SKIP LOCKED
    """
)

_STILL_RUNNING = text("SELECT id FROM generations WHERE request_id = :id AND state = 'leased' ORDER BY id")

_JUST_ENDED = text(
    """
    SELECT id FROM horde_requests
    WHERE ended_at > now() - make_interval(secs => :window) AND bodies_erased_at IS NULL
    ORDER BY ended_at DESC LIMIT :limit
    """
)

_FORGET_KEYS = text("DELETE FROM operation_keys WHERE created_at < now() - make_interval(hours => :hours)")

_ERASE = text(
    """
    WITH due AS (
        SELECT r.id FROM horde_requests r
        WHERE r.ended_at < now() - make_interval(secs => :retention) AND r.bodies_erased_at IS NULL
          AND NOT EXISTS (
              SELECT 1 FROM generations g WHERE g.request_id = r.id AND g.state IN ('leased', 'submitted'))
        ORDER BY r.ended_at LIMIT :limit FOR UPDATE SKIP LOCKED
    ), bodies AS (
        DELETE FROM request_bodies b USING due WHERE b.request_id = due.id
    ), answers AS (
        DELETE FROM replies y USING generations g, due WHERE y.generation_id = g.id AND g.request_id = due.id
    )
    UPDATE horde_requests r SET bodies_erased_at = now() FROM due WHERE r.id = due.id
    RETURNING r.id
    """
)
