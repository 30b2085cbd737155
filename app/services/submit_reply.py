"""Takes a worker's reply: stored and committed, then verified by a task; the verdict is awaited briefly (A4, D13)."""

import time
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID

import structlog
from psycopg.types.json import Jsonb
from sqlalchemy import Row, text

from app.adapters.breaker import Breaker
from app.adapters.database import Transaction
from app.domain.errors import AbortedGen, BadRequest, ChatReplyRefused, InvalidJobId, WrongCredentials
from app.domain.pricing import kudos
from app.domain.states import GenerationState, RequestState
from app.domain.task_names import TaskName
from app.domain.verdict_route import verification_task
from app.domain.verification import Reply
from app.services.accounts import digest, refused_key
from app.services.banned import BAN_COLUMNS, BAN_OF, refuse_banned
from app.services.faults import OTHER_FAULT, WORKER_FAULTS, Failure, fail_generation
from app.services.runtime import Runtime
from app.services.transitions import guard
from config.fault_points import FaultPoint, reach

SLOW_VERDICTS_REST_SECONDS = 5.0

OVER = frozenset({RequestState.DONE, RequestState.FAULTED, RequestState.EXPIRED})
"""Requests for which a reply comes too late; one that was cancelled still takes what was under way."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the worker is told: its reward in kudos, or that the verdict is still to come."""

    reward: float | None

    @property
    def is_final(self) -> bool:
        """Whether the reply was verified."""
        return self.reward is not None


class VerdictWait:
    """Bounds how many request threads wait for verdicts, and none while verdicts are slow (details D13)."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._places = BoundedSemaphore(max(1, runtime.settings.native_threads // 4))
        self._slow = Breaker(SLOW_VERDICTS_REST_SECONDS)

    def __call__(self, generation_id: UUID) -> dict[str, Any] | None:
        """Return the verdict, or None when it did not come in time or nobody may wait."""
        if self._slow.is_open or not self._places.acquire(blocking=False):
            return None
        started = time.monotonic()
        try:
            verdict = self._runtime.bus.wait_for_verdict(generation_id, self._runtime.settings.verdict_wait_seconds)
        finally:
            self._places.release()
        if verdict is None and time.monotonic() - started >= self._runtime.settings.verdict_wait_seconds:
            self._slow.failed()
        return verdict


class SubmitReply:
    """The use case of a worker's submit."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._wait = VerdictWait(runtime)

    def deliver(self, api_key: str, generation_id: UUID, reply: Reply) -> Receipt:
        """Store a reply once, however often it is sent, and report what became of it.

        Raises InvalidApiKey, InvalidJobId, WrongCredentials, BadRequest, AbortedGen, or
        ChatReplyRefused with what failed.
        """
        with self._runtime.database.statements() as transaction:
            row = _require_own(self._stored(transaction, api_key, generation_id, reply))
            if not row.is_chat:
                raise BadRequest("message: this is a text job; submit its reply as 'generation'.", param="message")
            if row.stored:
                self._announce(transaction, row, reply)
            else:
                known = _known_outcome(row)
                if known is None and row.state != GenerationState.SUBMITTED:
                    # The same submit, sent twice at once, came first: what became of that one is the answer.
                    known = _known_outcome(load_job(transaction, api_key, generation_id))
                if known is not None:
                    return known
        verdict = self._wait(generation_id)
        return Receipt(None) if verdict is None else _receipt(verdict)

    def fault(self, api_key: str, generation_id: UUID, fault: str) -> Receipt:
        """Note that a worker cannot serve its job; the request goes to another. Counts once.

        Raises InvalidApiKey, InvalidJobId, WrongCredentials, or AbortedGen when the job had another end.
        """
        code = fault if fault in WORKER_FAULTS else OTHER_FAULT
        with self._runtime.database.transaction() as transaction:
            row = load_job(transaction, api_key, generation_id)
            if row.state == GenerationState.FAULTED:
                return Receipt(0.0)
            if row.state in {GenerationState.SUBMITTED, GenerationState.VERIFIED, GenerationState.SETTLED}:
                raise AbortedGen("This job's reply was submitted before, so it cannot be faulted any more.")
            if row.state != GenerationState.LEASED:
                raise _aborted()
            why = Failure(GenerationState.FAULTED, code)
            if not fail_generation(self._runtime, transaction, generation_id, why):
                raise _aborted()
        return Receipt(0.0)

    def _stored(self, transaction: Transaction, api_key: str, generation_id: UUID, reply: Reply) -> Row[Any] | None:
        """Store the reply if it may be; return the job as it was before, and whether that is `stored`."""
        return transaction.execute(
            _STORE,
            {
                "id": generation_id,
                "digest": digest(api_key),
                "body": Jsonb(reply.stored()),
                "sources": guard(GenerationState.SUBMITTED),
                "over": [state.value for state in OVER],
                "rescue": self._runtime.settings.rescue_after_seconds,
            },
        ).one_or_none()

    def _announce(self, transaction: Transaction, row: Row[Any], reply: Reply) -> None:
        generation_id = str(row.id)
        task = verification_task(row.features, context_tokens=row.context_tokens, reply_characters=reply.characters)
        transaction.after_commit(lambda: reach(FaultPoint.REPLY_STORED))
        transaction.after_commit(lambda: self._runtime.leases.submitted(row.request_id, row.id))
        transaction.after_commit(lambda: self._dispatch(task, generation_id))
        log.info("reply.stored", generation_id=generation_id, request_id=str(row.request_id))

    def _dispatch(self, task: TaskName, generation_id: str) -> None:
        self._runtime.sender.send(task, generation_id)
        reach(FaultPoint.VERDICT_DISPATCHED)


def load_job(transaction: Transaction, api_key: str, generation_id: UUID) -> Row[Any]:
    """Return a job of this key's account, with the state of its request.

    Raises InvalidApiKey, UserBanned, InvalidJobId or WrongCredentials.
    """
    return _require_own(transaction.execute(_LOAD, {"id": generation_id, "digest": digest(api_key)}).one_or_none())


def _require_own(row: Row[Any] | None) -> Row[Any]:
    if row is None:
        raise refused_key()
    refuse_banned(row)
    if row.id is None:
        raise InvalidJobId("No job has this id. It may have been given out too long ago.", param="id")
    if row.owner_id != row.caller_id:
        raise WrongCredentials("This job was given to a worker of another account.", param="apikey")
    return row


def _known_outcome(row: Row[Any]) -> Receipt | None:
    """Return what an earlier submit of this job came to; None while that is open."""
    state = GenerationState(row.state)
    if state in {GenerationState.VERIFIED, GenerationState.SETTLED}:
        return Receipt(kudos(row.reward))
    if state is GenerationState.REFUSED:
        raise ChatReplyRefused(row.refusal or "The reply was refused.")
    if state is GenerationState.FAULTED and row.reward is not None:
        # Not this worker's fault, so it was paid all the same (details D13).
        return Receipt(kudos(row.reward))
    if state in {GenerationState.FAULTED, GenerationState.CANCELLED}:
        raise _aborted()
    if state is GenerationState.SUBMITTED:
        return None
    if row.request_state in OVER:
        raise _aborted()
    return None


def _receipt(verdict: dict[str, Any]) -> Receipt:
    refusal = verdict.get("refusal")
    if isinstance(refusal, str):
        raise ChatReplyRefused(refusal)
    if verdict.get("aborted"):
        raise _aborted()
    return Receipt(float(verdict["reward"]))


def _aborted() -> AbortedGen:
    return AbortedGen("This job has ended: it was faulted, timed out or delivered by another worker. Drop it.")


_JOB = f"""
    SELECT {BAN_COLUMNS}, k.user_id AS caller_id, g.id, g.request_id, g.state, g.reward, g.refusal, g.model,
           w.user_id AS owner_id, r.state AS request_state, r.is_chat, r.context_tokens, r.max_length,
           g.streamed, extract(epoch FROM g.deadline_at - now())::float8 AS seconds_left,
           r.requirements -> 'features' AS features
    FROM api_keys k
    LEFT JOIN (generations g
        JOIN workers w ON w.id = g.worker_id
        JOIN horde_requests r ON r.id = g.request_id) ON g.id = :id
    {BAN_OF.format(account="k.user_id")}
    WHERE k.key_sha256 = :digest AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
      AND k.shared_id IS NULL
    """  # noqa: S608 - joined from constants

_LOAD = text(_JOB)

# Who may not submit, or comes too late, is told why from the job; here nothing of his is stored.
_STORE = text(
    f"""
    WITH job AS ({_JOB}), moved AS (
        UPDATE generations g SET state = 'submitted', submitted_at = now(),
            next_dispatch_at = now() + make_interval(secs => :rescue)
        FROM job
        WHERE g.id = job.id AND g.state = ANY(CAST(:sources AS text[])) AND NOT job.banned AND job.is_chat
          AND job.owner_id = job.caller_id AND job.request_state <> ALL(CAST(:over AS text[]))
        RETURNING g.id
    ), kept AS (
        INSERT INTO replies (generation_id, body) SELECT id, :body FROM moved
    )
    SELECT job.*, EXISTS (SELECT 1 FROM moved) AS stored FROM job
    """  # noqa: S608 - joined from constants
)
