"""Ends a request whose schema keeps killing its verifier (details D13).

The worker delivered, so it is paid, by the horde's own account; nobody is charged, and the
fault is not the worker's.
"""

from uuid import UUID

import structlog
from sqlalchemy import text

from app.domain.pricing import kudos
from app.domain.states import GenerationState, RequestState
from app.services.compensation import compensate
from app.services.faults import GENERATIONS_FAILED, end_request, lock_generation
from app.services.runtime import Runtime
from app.services.transitions import move_generation

FAULT = "schema_too_costly"
"""Fault of such a generation; it counts towards no worker's aborts."""

log = structlog.get_logger(__name__)


def fault_for_schema(runtime: Runtime, generation_id: UUID) -> bool:
    """Fault the request, and pay the worker what its reply would have earned.

    False, with nothing changed, when the generation was verified or ended meanwhile.
    """
    with runtime.database.transaction() as transaction:
        locked = lock_generation(transaction, generation_id)
        if locked is None or locked.generation_state != GenerationState.SUBMITTED:
            return False
        earned = compensate(transaction, generation_id)
        move_generation(
            transaction,
            generation_id,
            GenerationState.FAULTED,
            fault=FAULT,
            charge=0,
            reward=earned,
            ended_at=text("now()"),
            next_dispatch_at=None,
        )
        if locked.request_state == RequestState.PROCESSING:
            end_request(runtime, transaction, locked.request_id, RequestState.FAULTED, fault=_fault())
        transaction.after_commit(lambda: runtime.bus.put_verdict(generation_id, {"reward": kudos(earned)}))
    GENERATIONS_FAILED.labels(GenerationState.FAULTED.value, FAULT).inc()
    log.error("verification.schema_too_costly", generation_id=str(generation_id), request_id=str(locked.request_id))
    return True


def _fault() -> dict[str, str | None]:
    return {
        "rc": "SchemaTooCostly",
        "message": "the reply could not be held against the response_format's schema in time. Send a simpler schema.",
        "param": "response_format",
    }
