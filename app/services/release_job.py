"""Gives back a job whose worker had gone before the answer reached it (details D16)."""

from uuid import UUID

import structlog
from sqlalchemy import text

from app.domain.states import GenerationState, RequestState
from app.services.faults import lock_generation, requeue
from app.services.runtime import Runtime
from app.services.transitions import move_generation

log = structlog.get_logger()


class ReleaseJob:
    """The use case of a release."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __call__(self, generation_id: UUID) -> bool:
        """Put the request back in the queue; no fault and no abort is counted.

        False when the job is not waiting for a reply.
        """
        with self._runtime.database.transaction() as transaction:
            row = lock_generation(transaction, generation_id)
            if row is None or row.generation_state != GenerationState.LEASED:
                return False
            move_generation(
                transaction, generation_id, GenerationState.FAULTED, fault="released", ended_at=text("now()")
            )
            if row.request_state == RequestState.PROCESSING:
                requeue(self._runtime, transaction, row.request_id, row.faults)
        log.info("generation.released", generation_id=str(generation_id))
        return True
