"""Hands jobs to a worker: check-in, then one claim over the classes that it may serve (A5, D11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog
from prometheus_client import Counter, Histogram
from psycopg.types.json import Jsonb
from sqlalchemy import Row, text
from sqlalchemy.exc import IntegrityError

from app.adapters.database import Transaction
from app.domain.addresses import source_of
from app.domain.contract import ChatRequest
from app.domain.declaration import Declaration
from app.domain.errors import AnonForbiddenWorker, BadRequest, WorkerMaintenance, WrongCredentials
from app.domain.lifetimes import ttl_factor
from app.domain.narrowing import chat_payload
from app.domain.refused_words import found_words
from app.domain.selection import Candidate
from app.domain.system_accounts import ANONYMOUS_ID
from app.domain.text_request import text_payload
from app.domain.worker_profile import message_object
from app.services.accounts import digest, refused_key
from app.services.banned import BAN_COLUMNS, BAN_OF, refuse_banned
from app.services.claim import OFFLOADED, Asking, Wish, claim
from app.services.job_media import JobMedia
from app.services.online import OnlineWorkers
from app.services.progress import new_lease
from app.services.queue_info import QueueInfo
from app.services.release_job import reclassify
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime
from app.services.walks import Walks
from app.services.worker_screen import WorkerScreen
from config.fault_points import FaultPoint, reach
from config.metrics import begin_at_zero

CHECK_IN_SECONDS = 10.0
"""A worker that declares nothing new is noted at most this often."""

REFUSED_WORD_TRIES = 4
"""Jobs that one pop puts back because of a word that nobody refused when they came in."""

WAIT_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200)
"""Bounds of the waits' histogram, up to the life of a request that names no deadline."""

POPS = Counter("horde_pops", "Pops answered.", ["result"])
QUEUED_SECONDS = Histogram("horde_queued_seconds", "Time from queued to popped.", buckets=WAIT_SECONDS)
begin_at_zero(POPS, "job", "empty")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """What the worker is told: ids and a payload, or that there is nothing, and why it was passed over."""

    worker_id: UUID | None = None
    ids: tuple[UUID, ...] = ()
    request_id: UUID | None = None
    is_chat: bool = False
    payload: dict[str, Any] | None = None
    ttl_seconds: int | None = None
    model: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    messages: Sequence[Mapping[str, Any]] = ()
    offloaded: str | None = None

    @property
    def id(self) -> UUID | None:
        """The first job's id; None when there is no job."""
        return self.ids[0] if self.ids else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Popping:
    """One pop under way."""

    seen: Row[Any]
    candidate: Candidate
    worker_id: UUID
    pop_key: str | None

    @property
    def declaration(self) -> Declaration:
        return self.candidate.declaration


class Pop:
    """The use case, with what this process remembers between calls."""

    def __init__(
        self, runtime: Runtime, online: OnlineWorkers, classes: RequirementClasses, queue_info: QueueInfo
    ) -> None:
        self._runtime = runtime
        self._online = online
        self._classes = classes
        self._queue_info = queue_info
        self._walks = Walks()
        self._screen = WorkerScreen(runtime)
        self._media = JobMedia(runtime)

    def __call__(self, api_key: str, declaration: Declaration, pop_key: str | None, address: str = "") -> Job:
        """Give the worker that calls from this address its next job.

        The same `pop_key` gets the same job again, so a lost answer strands nothing
        (details D15). Raises InvalidApiKey, UserBanned, AnonForbiddenWorker, WrongCredentials, BadRequest,
        WorkerMaintenance, or what `WorkerScreen` refuses with.
        """
        if declaration.prompt_jobs and not (declaration.chat_jobs or declaration.models):
            raise BadRequest("'models' is required for text jobs: name the models that the worker serves.")
        try:
            with self._runtime.database.statements() as transaction:
                job = self._pop(transaction, api_key, declaration, pop_key, address)
        except IntegrityError:
            # The twin of this pop key, or of this new worker's name, committed first: now it can be read.
            with self._runtime.database.statements() as transaction:
                job = self._pop(transaction, api_key, declaration, pop_key, address)
        job = self._with_lease(self._with_media(job, declaration), api_key)
        POPS.labels("job" if job.ids else "empty").inc()
        return job

    def _with_media(self, job: Job, declaration: Declaration) -> Job:
        """Put images and offloaded messages into a chat job, now that nothing is locked (images I5)."""
        if job.payload is None or job.id is None or not job.is_chat:
            return job
        payload = self._media.completed(
            job.payload, declaration.image_transports, folder=job.offloaded, generation_id=job.id
        )
        return Job(worker_id=job.worker_id) if payload is None else replace(job, payload=payload)

    def _with_lease(self, job: Job, api_key: str) -> Job:
        """Write a chat job's lease before the worker hears of the job; without one it is not streamed (details D5)."""
        if job.id is None or job.request_id is None or job.payload is None or job.model is None or not job.is_chat:
            return job
        lease = new_lease(
            generation_id=job.id,
            request_id=job.request_id,
            api_key=api_key,
            model=job.model,
            streamed=job.payload["stream"],
            max_length=job.payload["max_length"],
            seconds_left=job.ttl_seconds or 0,
        )
        opened = self._runtime.leases.open(lease)
        reach(FaultPoint.LEASE_WRITTEN)
        if opened is not None or not lease.streamed:
            return job
        with self._runtime.database.statements() as transaction:
            if transaction.execute(_NOT_STREAMED, {"id": job.id}).first() is None:
                return Job(job.worker_id)
        return replace(job, payload=job.payload | {"stream": False})

    def _pop(
        self, transaction: Transaction, api_key: str, declaration: Declaration, pop_key: str | None, address: str
    ) -> Job:
        seen = transaction.execute(
            _IDENTIFY, {"digest": digest(api_key), "name": declaration.name, "pop_key": pop_key}
        ).one_or_none()
        if seen is None:
            raise refused_key()
        refuse_banned(seen)
        _check_owner(seen)
        self._screen(transaction, seen, declaration, address)
        worker_id = self._check_in(transaction, seen, declaration, address)
        candidate = Candidate(
            id=str(worker_id), declaration=declaration, trusted=seen.trusted, speeds=seen.speeds or {}
        )
        popping = _Popping(seen=seen, candidate=candidate, worker_id=worker_id, pop_key=pop_key)
        return replace(self._job(transaction, popping), messages=[message_object(each) for each in seen.messages or ()])

    def _job(self, transaction: Transaction, popping: _Popping) -> Job:
        """Find the worker's job. Raises WorkerMaintenance when there is none and it is in maintenance."""
        seen = popping.seen
        if seen.popped_before is not None:
            return self._same_job(transaction, popping)
        if seen.paused:
            return Job(popping.worker_id)
        rows = self._claim(transaction, popping)
        if rows:
            return self._leased(transaction, popping, rows)
        if seen.maintenance:
            raise WorkerMaintenance(
                seen.maintenance_message or "This worker is in maintenance. End it to get jobs again."
            )
        return Job(popping.worker_id, skipped=self._queue_info.skipped(transaction, popping.candidate))

    def _check_in(self, transaction: Transaction, seen: Row[Any], declaration: Declaration, address: str) -> UUID:
        """Note that the worker is here, from where, and what it declares, when that is news."""
        stored, source = declaration.stored(), source_of(address) if address else ""
        if seen.worker_id is not None:
            age = (datetime.now(UTC) - seen.last_seen_at).total_seconds()
            if age < CHECK_IN_SECONDS and seen.declaration == stored and seen.address == source:
                return UUID(str(seen.worker_id))
        worker_id = seen.worker_id or uuid4()
        transaction.execute(
            _CHECK_IN,
            {
                "id": worker_id,
                "user_id": seen.user_id,
                "name": declaration.name,
                "address": source,
                "declaration": Jsonb(stored),
                "model_id": declaration.model_id if declaration.chat_jobs else None,
                "online": self._runtime.settings.worker_online_seconds,
            },
        )
        return UUID(str(worker_id))

    def _claim(self, transaction: Transaction, popping: _Popping) -> Sequence[Row[Any]]:
        """Claim a job; one that holds a word which this worker refuses goes back with that word noted."""
        blacklist = popping.declaration.blacklist
        waiting = list(popping.seen.waiting_classes)
        for _ in range(REFUSED_WORD_TRIES):
            wishes = self._wishes(transaction, popping, waiting)
            rows = claim(transaction, self._asking(popping), wishes, self._walks) if wishes else []
            found = found_words(rows[0].prompt, blacklist) if rows and blacklist else ()
            if not found:
                return rows
            ids = [row.generation_id for row in rows]
            with self._runtime.database.transaction() as undoing:
                reclassify(self._runtime, undoing, self._classes, ids, found)
        return []

    def _wishes(self, transaction: Transaction, popping: _Popping, waiting: list[int]) -> list[Wish]:
        obstacles = self._classes.obstacles(transaction, popping.candidate, waiting)
        found = self._classes.of(transaction, [class_id for class_id, why in obstacles.items() if why is None])
        allowed = {
            class_id: klass
            for class_id, klass in found.items()
            if self._media.may_serve(popping.declaration, class_id, klass)
        }
        if not allowed or not popping.seen.failed_lately:
            return [Wish(class_id=class_id, requirements=klass) for class_id, klass in allowed.items()]
        pool = self._online.pool(transaction)
        return [
            Wish(class_id=class_id, requirements=klass, rivals=pool.rivals(klass, popping.candidate.id))
            for class_id, klass in allowed.items()
        ]

    def _asking(self, popping: _Popping) -> Asking:
        declaration, speeds = popping.declaration, popping.candidate.speeds
        models = {*declaration.models, declaration.model_id}
        return Asking(
            worker_id=popping.worker_id,
            declaration=declaration,
            preferred=(popping.seen.user_id, *declaration.priority_ids),
            owner_only=bool(popping.seen.maintenance),
            pop_key=popping.pop_key,
            ttl_factor=ttl_factor(min((speed for model, speed in speeds.items() if model in models), default=None)),
            ttl_floor=self._runtime.settings.generation_ttl_floor_seconds,
            life=self._runtime.settings.request_ttl_seconds,
        )

    def _leased(self, transaction: Transaction, popping: _Popping, rows: Sequence[Row[Any]]) -> Job:
        transaction.after_commit(lambda: reach(FaultPoint.GENERATION_LEASED))
        QUEUED_SECONDS.observe(max(0.0, (datetime.now(UTC) - rows[0].created_at).total_seconds()))
        for row in rows:
            log.info("generation.leased", generation_id=str(row.generation_id), request_id=str(row.request_id))
        return _job(popping, rows, rows[0].ttl)

    def _same_job(self, transaction: Transaction, popping: _Popping) -> Job:
        rows = transaction.execute(_LEASED, {"id": popping.seen.popped_before}).all()
        if not rows:
            return Job(worker_id=popping.worker_id)
        left = (rows[0].deadline_at - datetime.now(UTC)) // timedelta(seconds=1)
        return _job(popping, rows, max(1, left))


def _check_owner(seen: Row[Any]) -> None:
    if seen.user_id == ANONYMOUS_ID:
        raise AnonForbiddenWorker("The anonymous account cannot run workers. Register to get a key of your own.")
    if seen.worker_id is not None and seen.owner_id != seen.user_id:
        raise WrongCredentials("A worker of this name belongs to another account. Choose another name.", param="name")


def _job(popping: _Popping, rows: Sequence[Row[Any]], ttl: int) -> Job:
    first = rows[0]
    return Job(
        worker_id=popping.worker_id,
        ids=tuple(row.generation_id for row in rows),
        is_chat=first.is_chat,
        request_id=first.request_id,
        payload=_payload(first, popping.declaration),
        ttl_seconds=ttl,
        model=first.model,
        offloaded=first.offloaded,
    )


def _payload(row: Row[Any], declaration: Declaration) -> dict[str, Any]:
    if not row.is_chat:
        return text_payload(row.prompt, row.contract)
    return chat_payload(
        ChatRequest.from_stored(row.contract),
        max_length=row.max_length,
        max_context_length=row.max_context_length,
        declares_reasoning="reasoning" in declaration.features,
        stream=row.streamed,
    )


# One round trip answers an idle worker: who it is, what it last said, whether this pop
# was answered before, and which classes have anybody waiting (a skip scan of the index,
# whose cost follows the number of classes and not the length of the queue).
_IDENTIFY = text(
    f"""
    SELECT {BAN_COLUMNS}, u.id AS user_id, u.trusted, u.flagged, u.vpn, u.worker_invited, w.address,
           w.id AS worker_id, w.user_id AS owner_id, w.maintenance,
           w.maintenance_message, w.last_seen_at, w.declaration, w.paused,
           COALESCE(w.failed_at > now() - interval '1 day', false) AS failed_lately,
           (SELECT jsonb_object_agg(s.model, s.tokens_per_second) FROM worker_speeds s WHERE s.worker_id = w.id)
               AS speeds,
           (SELECT g.id FROM generations g WHERE g.worker_id = w.id AND g.pop_key = CAST(:pop_key AS text))
               AS popped_before,
           (SELECT jsonb_agg(jsonb_build_object(
                       'id', m.id, 'message', m.message, 'origin', m.origin, 'expires_at', m.expires_at)
                    ORDER BY m.created_at)
            FROM worker_messages m
            WHERE (m.worker_id = w.id OR m.worker_id IS NULL) AND m.expires_at > now()) AS messages,
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
    LEFT JOIN workers w ON w.name = :name AND w.deleted_at IS NULL
    {BAN_OF.format(account="u.id")}
    WHERE k.key_sha256 = :digest AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
      AND k.shared_id IS NULL AND NOT u.deleted
    """  # noqa: S608 - joined from constants
)

_CHECK_IN = text(
    """
    WITH known AS (
        INSERT INTO known_models (name)
        SELECT CAST(:model_id AS text) WHERE CAST(:model_id AS text) IS NOT NULL
        ON CONFLICT DO NOTHING
    )
    INSERT INTO workers (id, user_id, name, address, declaration, last_seen_at)
    VALUES (:id, :user_id, :name, :address, :declaration, now())
    ON CONFLICT (id) DO UPDATE SET
        declaration = excluded.declaration, address = excluded.address, last_seen_at = now(),
        uptime_seconds = workers.uptime_seconds + CASE
            WHEN workers.last_seen_at > now() - make_interval(secs => :online)
            THEN extract(epoch FROM now() - workers.last_seen_at) ELSE 0 END
    """
)

# A job that was cancelled meanwhile is not given out.
_NOT_STREAMED = text("UPDATE generations SET streamed = false WHERE id = :id AND state = 'leased' RETURNING id")

# The jobs of one pop were born in one statement, so they share its time.
_LEASED = text(
    f"""
    SELECT g.id AS generation_id, g.request_id, g.deadline_at, g.streamed, g.model, r.is_chat, r.max_length,
           r.max_context_length, b.contract, CASE WHEN NOT r.is_chat THEN b.prompt END AS prompt,
           {OFFLOADED.format(request="r.id")}
    FROM generations first
    JOIN generations g ON g.request_id = first.request_id AND g.worker_id = first.worker_id
        AND g.popped_at = first.popped_at
    JOIN horde_requests r ON r.id = g.request_id
    JOIN request_bodies b ON b.request_id = r.id
    WHERE first.id = :id AND g.state = 'leased'
    ORDER BY g.slot
    """  # noqa: S608 - the fragment is a constant
)
