"""Ends a generation that delivered nothing, and gives its request to another worker or gives up (native-api N4)."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from prometheus_client import Counter
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.redis_keys import ChatEvent, QueueSignal
from app.domain.states import GENERATION_MOVES, GenerationState, RequestState
from app.services.runtime import Runtime
from app.services.transitions import move_generation, move_request
from config.fault_points import FaultPoint, reach

GENERATIONS_FAILED = Counter("horde_generations_failed", "Generations that delivered nothing.", ["state", "fault"])
OTHER_FAULT = "other"

log = structlog.get_logger()

WORKER_FAULTS = frozenset(
    {"prompt_overflow", "backend_error", "timeout", "shutdown", "image_fetch_failed", "messages_fetch_failed"}
)
"""Fault codes that a worker may report (details D5); any other is kept as `other`."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a generation ends without a reply: the state it gets, and a code for people and figures."""

    state: GenerationState
    fault: str
    refusal: str | None = None


def fail_generation(runtime: Runtime, transaction: Transaction, generation_id: UUID, why: Failure) -> bool:
    """End a generation without a reply; count it once, and requeue or fault its request.

    Takes the request's lock, then the generation's. False, with nothing changed, when the
    generation has moved on to where it cannot fail so.
    """
    row = lock_generation(transaction, generation_id)
    if row is None or why.state not in GENERATION_MOVES[GenerationState(row.generation_state)]:
        return False
    move_generation(
        transaction,
        generation_id,
        why.state,
        fault=why.fault,
        refusal=why.refusal,
        ended_at=text("now()"),
        next_dispatch_at=None,
    )
    GENERATIONS_FAILED.labels(why.state.value, why.fault).inc()
    log.info(
        "generation.failed",
        generation_id=str(generation_id),
        request_id=str(row.request_id),
        state=why.state.value,
        fault=why.fault,
    )
    transaction.after_commit(lambda: reach(FaultPoint.FAULT_STORED))
    if row.request_state == RequestState.PROCESSING:
        _next_attempt(runtime, transaction, row.request_id, row.faults + 1, why)
    return True


def lock_generation(transaction: Transaction, generation_id: UUID) -> Row[Any] | None:
    """Lock a generation's request, then the generation, and return where both stand."""
    return transaction.execute(_LOCK, {"id": generation_id}).one_or_none()


def _next_attempt(runtime: Runtime, transaction: Transaction, request_id: UUID, faults: int, why: Failure) -> None:
    if faults >= runtime.settings.max_faults:
        fault = {
            "rc": "ChatRequestFaulted",
            "message": f"{faults} attempts to serve this request failed; the last one's fault was {why.fault}.",
            "param": None,
        }
        end_request(runtime, transaction, request_id, RequestState.FAULTED, fault=fault, faults=faults)
        return
    requeue(runtime, transaction, request_id, faults)


def end_request(
    runtime: Runtime,
    transaction: Transaction,
    request_id: UUID,
    state: RequestState,
    *,
    fault: dict[str, str | None] | None = None,
    faults: int | None = None,
) -> None:
    """End a request without an answer and tell its front."""
    values: dict[str, object] = {"ended_at": text("now()"), "fault": fault}
    if faults is not None:
        values["faults"] = faults
    move_request(transaction, request_id, state, **values)
    transaction.after_commit(lambda: runtime.bus.publish_chat(request_id, ChatEvent.DONE))


def requeue(runtime: Runtime, transaction: Transaction, request_id: UUID, faults: int) -> None:
    """Put a request back where its age and priority place it, and wake a worker for it."""
    move_request(transaction, request_id, RequestState.QUEUED, faults=faults)
    row = transaction.execute(_ENQUEUE, {"id": request_id}).one()
    signal = QueueSignal(class_id=row.class_id, requirements=row.requirements)
    transaction.after_commit(lambda: runtime.bus.publish_queue(signal))


_LOCK = text(
    """
    SELECT r.id AS request_id, r.state AS request_state, r.faults, g.state AS generation_state
    FROM horde_requests r JOIN generations g ON g.request_id = r.id
    WHERE g.id = :id
    FOR UPDATE OF r, g
    """
)

_ENQUEUE = text(
    """
    WITH entered AS (
        INSERT INTO queue_entries (request_id, class_id, sort_key, max_length, max_context_length,
            images, tools, tools_temperature)
        SELECT id, class_id, sort_key, max_length, max_context_length, (requirements ->> 'images')::int,
            (requirements ->> 'tools')::int, (requirements ->> 'tools_temperature')::float8
        FROM horde_requests WHERE id = :id
        ON CONFLICT DO NOTHING
    )
    SELECT class_id, requirements FROM horde_requests WHERE id = :id
    """
)
