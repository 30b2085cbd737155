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
from app.services.aborts import count_abort
from app.services.runtime import Runtime
from app.services.transitions import LIVES_ON, move_generation, move_request
from config.fault_points import FaultPoint, reach

GENERATIONS_FAILED = Counter("horde_generations_failed", "Generations that delivered nothing.", ["state", "fault"])
OTHER_FAULT = "other"

log = structlog.get_logger(__name__)

UNDER_WAY = frozenset({RequestState.QUEUED, RequestState.PROCESSING})
"""States of a request that can have a slot at a worker: others of its slots may still be queued."""

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
    end_lease(runtime, transaction, generation_id, row)
    if row.fault is None:
        # A generation that failed before, and came back late, was counted then.
        count_abort(runtime, transaction, row.worker_id, row.popped_at, why.fault)
        if row.request_state in UNDER_WAY and not row.slot_delivered:
            _next_attempt(runtime, transaction, row, why)
    return True


def end_lease(runtime: Runtime, transaction: Transaction, generation_id: UUID, row: Row[Any]) -> None:
    """End a locked chat job's lease after the commit: nobody waits for its text any more."""
    if row.is_chat:
        transaction.after_commit(lambda: runtime.leases.ended(row.request_id, generation_id, streamed=row.streamed))


def lock_generation(transaction: Transaction, generation_id: UUID) -> Row[Any] | None:
    """Lock a generation's request, then the generation, and return where both stand."""
    return transaction.execute(_LOCK, {"id": generation_id}).one_or_none()


def _next_attempt(runtime: Runtime, transaction: Transaction, row: Row[Any], why: Failure) -> None:
    faults, request_id = row.faults + 1, row.request_id
    if faults >= runtime.settings.max_faults:
        fault = {
            "rc": "ChatRequestFaulted",
            "message": f"{faults} attempts to serve this request failed; the last one's fault was {why.fault}.",
            "param": None,
        }
        end_request(runtime, transaction, request_id, RequestState.FAULTED, fault=fault, faults=faults)
        return
    requeue(runtime, transaction, request_id, row.slot, faults)


def end_request(
    runtime: Runtime,
    transaction: Transaction,
    request_id: UUID,
    state: RequestState,
    *,
    fault: dict[str, str | None] | None = None,
    faults: int | None = None,
) -> None:
    """End a request without an answer, take what is left of it out of the queue, and tell its front."""
    values: dict[str, object] = {"ended_at": text("now()"), "fault": fault, "waiting": 0}
    if faults is not None:
        values["faults"] = faults
    move_request(transaction, request_id, state, **values)
    transaction.execute(LEAVE_QUEUE, {"ids": [request_id]})
    transaction.after_commit(lambda: runtime.bus.publish_chat(request_id, ChatEvent.DONE))


def requeue(runtime: Runtime, transaction: Transaction, request_id: UUID, slot: int, faults: int) -> None:
    """Put a slot of a locked request back where its age and priority place it, and wake a worker for it."""
    row = transaction.execute(
        _ENQUEUE,
        {
            "id": request_id,
            "slot": slot,
            "faults": faults,
            "sources": sorted(UNDER_WAY),
            "life": runtime.settings.request_ttl_seconds,
        },
    ).one()
    signal = QueueSignal(class_id=row.class_id, requirements=row.requirements)
    transaction.after_commit(lambda: runtime.bus.publish_queue(signal))


_LOCK = text(
    """
    SELECT r.id AS request_id, r.state AS request_state, r.faults, g.state AS generation_state, g.fault, g.slot,
           g.worker_id, g.popped_at, g.streamed, r.is_chat, r.requirements,
           EXISTS (SELECT 1 FROM generations d WHERE d.request_id = r.id AND d.slot = g.slot
                   AND d.state IN ('verified', 'settled')) AS slot_delivered
    FROM horde_requests r JOIN generations g ON g.request_id = r.id
    WHERE g.id = :id
    FOR UPDATE OF r, g
    """
)

# An entry that a claim holds is left to it: the claim waits for the request's row, and
# finds it ended.
LEAVE_QUEUE = text(
    """
    DELETE FROM queue_entries q WHERE q.request_id = ANY(CAST(:ids AS uuid[])) AND (q.request_id, q.slot) IN (
        SELECT e.request_id, e.slot FROM queue_entries e WHERE e.request_id = ANY(CAST(:ids AS uuid[]))
        FOR UPDATE SKIP LOCKED)
    """
)

_ENQUEUE = text(
    f"""
    WITH moved AS (
        UPDATE horde_requests r SET state = 'queued', waiting = r.waiting + 1, faults = :faults,
            expires_at = {LIVES_ON}
        WHERE r.id = :id AND r.state = ANY(CAST(:sources AS text[]))
        RETURNING r.*
    ), entered AS (
        INSERT INTO queue_entries (request_id, slot, user_id, class_id, sort_key, max_length, max_context_length,
            images, tools, tools_temperature, retried)
        SELECT id, :slot, user_id, class_id, sort_key, max_length, max_context_length,
            (requirements ->> 'images')::int, (requirements ->> 'tools')::int,
            (requirements ->> 'tools_temperature')::float8, faults > 0
        FROM moved
    )
    SELECT class_id, requirements FROM moved
    """  # noqa: S608 - a constant
)
