"""Gives back a job whose worker had gone before the answer reached it (details D16)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog
from psycopg.types.json import Jsonb
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.requirements import Requirements
from app.domain.states import GenerationState
from app.services.faults import UNDER_WAY, end_lease, lock_generation, requeue
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime
from app.services.transitions import move_generation

log = structlog.get_logger(__name__)


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
            _put_back(self._runtime, transaction, generation_id, row)
        log.info("generation.released", generation_id=str(generation_id))
        return True


def reclassify(
    runtime: Runtime,
    transaction: Transaction,
    classes: RequirementClasses,
    generation_ids: Sequence[UUID],
    found: Iterable[str],
) -> None:
    """Put jobs of one request back into the class of those whose prompts hold these words too.

    For words that no worker refused when the request came in.
    """
    rows = [(each, lock_generation(transaction, each)) for each in generation_ids]
    held = [(each, row) for each, row in rows if row is not None and row.generation_state == GenerationState.LEASED]
    for generation_id, row in held:
        requirements = Requirements.from_stored(row.requirements)
        requirements = replace(requirements, refused_words=tuple(sorted({*requirements.refused_words, *found})))
        class_id = classes.intern(transaction, requirements)
        transaction.execute(
            _RECLASSIFY, {"id": row.request_id, "class_id": class_id, "requirements": Jsonb(requirements.stored())}
        )
        _put_back(runtime, transaction, generation_id, row)


def _put_back(runtime: Runtime, transaction: Transaction, generation_id: UUID, row: Row[Any]) -> None:
    move_generation(transaction, generation_id, GenerationState.FAULTED, fault="released", ended_at=text("now()"))
    end_lease(runtime, transaction, generation_id, row)
    if row.request_state in UNDER_WAY and not row.slot_delivered:
        requeue(runtime, transaction, row.request_id, row.slot, row.faults)


# Slots that wait move to the new class; one that another worker is taking just now goes with that claim.
_RECLASSIFY = text(
    """
    WITH moved AS (
        UPDATE horde_requests SET class_id = :class_id, requirements = :requirements WHERE id = :id
    )
    UPDATE queue_entries q SET class_id = :class_id WHERE q.request_id = :id AND q.slot IN (
        SELECT e.slot FROM queue_entries e WHERE e.request_id = :id FOR UPDATE SKIP LOCKED)
    """
)
