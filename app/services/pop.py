"""Hands a job to a worker: check-in, then one claim over the classes that its declaration covers (A5, D11)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog
from prometheus_client import Counter, Histogram
from psycopg.types.json import Jsonb
from sqlalchemy import Row, text
from sqlalchemy.exc import IntegrityError

from app.adapters.database import Transaction
from app.domain.contract import ChatRequest
from app.domain.declaration import Declaration, Limit
from app.domain.errors import AnonForbiddenWorker, WorkerMaintenance, WrongCredentials
from app.domain.narrowing import chat_payload
from app.domain.states import RequestState
from app.domain.system_accounts import ANONYMOUS_ID
from app.services.accounts import digest, refused_key
from app.services.online import OnlineWorkers
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime
from app.services.transitions import guard
from config.fault_points import FaultPoint, reach

CHECK_IN_SECONDS = 10.0
"""A worker that declares nothing new is noted at most this often."""

POPS = Counter("horde_pops", "Pops answered.", ["job"])
QUEUED_SECONDS = Histogram("horde_queued_seconds", "Time from queued to popped.")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Job:
    """What the worker is told: an id and a payload, or that there is nothing."""

    id: UUID | None = None
    payload: dict[str, Any] | None = None
    ttl_seconds: int | None = None
    model: str | None = None


NO_JOB = Job()


class Pop:
    """The use case, with what this process remembers between calls."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers, classes: RequirementClasses) -> None:
        self._runtime = runtime
        self._online = online
        self._classes = classes

    def __call__(self, api_key: str, declaration: Declaration, pop_key: str | None) -> Job:
        """Give the worker its next job.

        The same `pop_key` gets the same job again, so a lost answer strands nothing
        (details D15). Raises InvalidApiKey, AnonForbiddenWorker, WrongCredentials or
        WorkerMaintenance.
        """
        try:
            with self._runtime.database.statements() as transaction:
                job = self._pop(transaction, api_key, declaration, pop_key)
        except IntegrityError:
            # The twin of this pop key, or of this new worker's name, committed first: now it can be read.
            with self._runtime.database.statements() as transaction:
                job = self._pop(transaction, api_key, declaration, pop_key)
        POPS.labels("yes" if job.id else "no").inc()
        return job

    def _pop(self, transaction: Transaction, api_key: str, declaration: Declaration, pop_key: str | None) -> Job:
        seen = transaction.execute(
            _IDENTIFY, {"digest": digest(api_key), "name": declaration.name, "pop_key": pop_key}
        ).one_or_none()
        if seen is None:
            raise refused_key()
        _check_owner(seen)
        worker_id = self._check_in(transaction, seen, declaration)
        if seen.popped_before is not None:
            return self._same_job(transaction, seen.popped_before, declaration)
        if not declaration.chat_jobs:
            return NO_JOB
        classes = self._classes.covered_by(transaction, declaration, list(seen.waiting_classes))
        if not classes:
            return NO_JOB
        return self._claim(transaction, worker_id, declaration, classes, pop_key)

    def _check_in(self, transaction: Transaction, seen: Row[Any], declaration: Declaration) -> UUID:
        """Note that the worker is here and what it declares, when that is news."""
        stored = declaration.stored()
        if seen.worker_id is not None:
            age = (datetime.now(UTC) - seen.last_seen_at).total_seconds()
            if age < CHECK_IN_SECONDS and seen.declaration == stored:
                return UUID(str(seen.worker_id))
        worker_id = seen.worker_id or uuid4()
        transaction.execute(
            _CHECK_IN,
            {
                "id": worker_id,
                "user_id": seen.user_id,
                "name": declaration.name,
                "declaration": Jsonb(stored),
                "model_id": declaration.model_id if declaration.chat_jobs else None,
            },
        )
        return UUID(str(worker_id))

    def _claim(
        self,
        transaction: Transaction,
        worker_id: UUID,
        declaration: Declaration,
        classes: list[int],
        pop_key: str | None,
    ) -> Job:
        pool = self._online.pool(transaction)
        model = declaration.model_id or ""
        row = transaction.execute(
            _CLAIM,
            {
                "classes": classes,
                **{limit.value: declaration.limit(limit) for limit in Limit},
                "avoid_faulted": pool.others_serve(model, declaration.name),
                "worker_id": worker_id,
                "generation_id": uuid4(),
                "model": model,
                "pop_key": pop_key,
                "sources": guard(RequestState.PROCESSING),
            },
        ).one_or_none()
        if row is None:
            return NO_JOB
        transaction.after_commit(lambda: reach(FaultPoint.GENERATION_LEASED))
        QUEUED_SECONDS.observe(max(0.0, (datetime.now(UTC) - row.created_at).total_seconds()))
        log.info("generation.leased", generation_id=str(row.generation_id), request_id=str(row.request_id))
        return _job(row, declaration, row.job_ttl_seconds)

    def _same_job(self, transaction: Transaction, generation_id: UUID, declaration: Declaration) -> Job:
        row = transaction.execute(_LEASED, {"id": generation_id}).one_or_none()
        if row is None:
            return NO_JOB
        left = (row.deadline_at - datetime.now(UTC)) // timedelta(seconds=1)
        return _job(row, declaration, max(1, left))


def _check_owner(seen: Row[Any]) -> None:
    if seen.user_id == ANONYMOUS_ID:
        raise AnonForbiddenWorker("The anonymous account cannot run workers. Register to get a key of your own.")
    if seen.worker_id is not None and seen.owner_id != seen.user_id:
        raise WrongCredentials("A worker of this name belongs to another account. Choose another name.", param="name")
    if seen.maintenance:
        raise WorkerMaintenance(seen.maintenance_message or "This worker is in maintenance. End it to get jobs again.")


def _job(row: Row[Any], declaration: Declaration, ttl: int) -> Job:
    contract: Mapping[str, Any] = row.contract
    payload = chat_payload(
        ChatRequest.from_stored(contract),
        max_length=row.max_length,
        max_context_length=row.max_context_length,
        declares_reasoning="reasoning" in declaration.features,
        stream=False,
    )
    return Job(id=row.generation_id, payload=payload, ttl_seconds=ttl, model=row.model)


# One round trip answers an idle worker: who it is, what it last said, whether this pop
# was answered before, and which classes have anybody waiting (a skip scan of the index,
# whose cost follows the number of classes and not the length of the queue).
_IDENTIFY = text(
    """
    SELECT u.id AS user_id, w.id AS worker_id, w.user_id AS owner_id, w.maintenance, w.maintenance_message,
           w.last_seen_at, w.declaration,
           (SELECT g.id FROM generations g WHERE g.worker_id = w.id AND g.pop_key = CAST(:pop_key AS text))
               AS popped_before,
           ARRAY(
               WITH RECURSIVE waiting AS (
                   (SELECT class_id FROM queue_entries ORDER BY class_id LIMIT 1)
                   UNION ALL
                   SELECT (SELECT q.class_id FROM queue_entries q WHERE q.class_id > waiting.class_id
                           ORDER BY q.class_id LIMIT 1)
                   FROM waiting WHERE waiting.class_id IS NOT NULL
               )
               SELECT class_id FROM waiting WHERE class_id IS NOT NULL
           ) AS waiting_classes
    FROM api_keys k
    JOIN users u ON u.id = k.user_id
    LEFT JOIN workers w ON w.name = :name
    WHERE k.key_sha256 = :digest AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
      AND k.shared_id IS NULL AND NOT u.deleted
    """
)

_CHECK_IN = text(
    """
    WITH known AS (
        INSERT INTO known_models (name)
        SELECT CAST(:model_id AS text) WHERE CAST(:model_id AS text) IS NOT NULL
        ON CONFLICT DO NOTHING
    )
    INSERT INTO workers (id, user_id, name, declaration, last_seen_at)
    VALUES (:id, :user_id, :name, :declaration, now())
    ON CONFLICT (id) DO UPDATE SET declaration = excluded.declaration, last_seen_at = now()
    """
)

_CLAIM = text(
    """
    WITH head AS (
        SELECT q.request_id FROM queue_entries q
        WHERE q.class_id = ANY(CAST(:classes AS int[]))
          AND q.max_length <= COALESCE(CAST(:max_length AS float8), 'Infinity')
          AND q.max_context_length <= COALESCE(CAST(:max_context_length AS float8), 'Infinity')
          AND q.images <= COALESCE(CAST(:max_images AS float8), 'Infinity')
          AND q.tools <= COALESCE(CAST(:max_tools AS float8), 'Infinity')
          AND COALESCE(q.tools_temperature, 0) <= COALESCE(CAST(:tools_max_temperature AS float8), 'Infinity')
          AND NOT (:avoid_faulted AND EXISTS (
              SELECT 1 FROM generations f WHERE f.request_id = q.request_id AND f.worker_id = :worker_id))
        ORDER BY q.sort_key
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ), taken AS (
        DELETE FROM queue_entries q USING head WHERE q.request_id = head.request_id RETURNING q.request_id
    ), moved AS (
        UPDATE horde_requests r SET state = 'processing' FROM taken
        WHERE r.id = taken.request_id AND r.state = ANY(CAST(:sources AS text[]))
        RETURNING r.id, r.max_length, r.max_context_length, r.job_ttl_seconds, r.created_at
    ), born AS (
        INSERT INTO generations (id, request_id, worker_id, state, model, pop_key, deadline_at)
        SELECT :generation_id, moved.id, :worker_id, 'leased', :model, CAST(:pop_key AS text),
            now() + make_interval(secs => moved.job_ttl_seconds)
        FROM moved
        RETURNING id
    )
    SELECT born.id AS generation_id, moved.id AS request_id, moved.max_length, moved.max_context_length,
           moved.job_ttl_seconds, moved.created_at, CAST(:model AS text) AS model, b.contract
    FROM moved, born, request_bodies b
    WHERE b.request_id = moved.id
    """
)

_LEASED = text(
    """
    SELECT g.id AS generation_id, g.request_id, g.deadline_at, g.model, r.max_length, r.max_context_length, b.contract
    FROM generations g
    JOIN horde_requests r ON r.id = g.request_id
    JOIN request_bodies b ON b.request_id = r.id
    WHERE g.id = :id AND g.state = 'leased'
    """
)
