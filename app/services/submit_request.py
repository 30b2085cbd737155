"""Takes a chat request: checked in the order of details D1, stored in one transaction, answered with its status."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import structlog
from prometheus_client import Counter
from psycopg.types.json import Jsonb
from sqlalchemy import select, text

from app.adapters.database import Transaction
from app.domain.capabilities import Requirements
from app.domain.contract import ChatRequest
from app.domain.errors import (
    BadRequest,
    HordeError,
    KudosCapExceeded,
    NoEligibleWorker,
    OperationKeyMismatch,
    ServiceUnavailable,
)
from app.domain.fingerprint import fingerprint
from app.domain.lifetimes import job_ttl_seconds, request_ttl_seconds
from app.domain.model_sizes import billions
from app.domain.pricing import kudos, quote
from app.domain.redis_keys import QueueSignal
from app.domain.request_status import RequestFacts, status_object
from app.domain.sizing import fitted_to, sized
from app.domain.states import RequestState
from app.models import OperationKey
from app.services.accounts import Caller, authenticate
from app.services.filters import Filters
from app.services.known_models import require_known
from app.services.online import OnlinePool, OnlineWorkers
from app.services.request_status import find_status
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime
from config.fault_points import FaultPoint, reach

OPERATION_KEY_HOURS = 24
ANONYMOUS_KEY_LENGTH = 22
AGEING_MILLIKUDOS_PER_SECOND = 5_000
"""Waiting this long outweighs this much: 50 kudos in 10 seconds, the wire reference's §4.9."""

REQUESTS_ACCEPTED = Counter("horde_requests_accepted", "Chat requests stored.")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A chat request as it came in: who sent it, from where, and what the front added."""

    api_key: str
    chat: ChatRequest
    operation_key: str | None = None
    address: str = ""
    proposed_id: UUID | None = None
    deadline_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What the requester is told."""

    id: UUID
    kudos: float
    status: dict[str, Any]
    replayed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request that passed every check and is ready to be stored."""

    chat: ChatRequest
    requirements: Requirements
    context_tokens: int
    prompt: str
    submitted_prompt: str
    quote: int
    warnings: tuple[str, ...]


class SubmitRequest:
    """The use case, with what this process remembers between calls."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers, classes: RequirementClasses) -> None:
        self._runtime = runtime
        self._online = online
        self._classes = classes
        self._filters = Filters()

    def quote(self, submission: Submission) -> float:
        """Return what the request would cost at most, in kudos, and store nothing."""
        with self._runtime.database.statements() as transaction:
            authenticate(transaction, submission.api_key)
            return kudos(self._plan(transaction, submission.chat).quote)

    def __call__(self, submission: Submission) -> Accepted:
        """Store the request and let a worker have it.

        With an operation key, the same key and body again answer the first request.
        Raises InvalidApiKey, OperationKeyMismatch, CorruptPrompt, NoEligibleWorker,
        ContractRefusal for an unknown model in a list, or KudosCapExceeded, with nothing stored.
        """
        with self._runtime.database.statements() as transaction:
            caller = authenticate(transaction, submission.api_key)
            key = _checked_key(submission, caller)
            try:
                plan = self._plan(transaction, submission.chat)
            except HordeError:
                # What a new request would be refused for does not touch one that was accepted before.
                replayed = self._replay(transaction, caller, submission, key)
                if replayed is None:
                    raise
                return replayed
            request_id = submission.proposed_id or uuid4()
            if not self._store(transaction, caller, submission, plan, request_id, key):
                replayed = self._replay(transaction, caller, submission, key)
                if replayed is None:
                    raise ServiceUnavailable("The submit with this operation key was just withdrawn. Send it again.")
                return replayed
        reach(FaultPoint.REQUEST_SIGNALLED)
        REQUESTS_ACCEPTED.inc()
        log.info("request.accepted", request_id=str(request_id), max_length=plan.requirements.max_length)
        availability = self._online.last.availability(plan.requirements)
        facts = RequestFacts(
            id=str(request_id), state=RequestState.QUEUED, waiting=1, processing=0, finished=0, restarted=0
        )
        return Accepted(
            id=request_id,
            kudos=kudos(plan.quote),
            status=status_object(facts, availability),
            warnings=plan.warnings,
        )

    def _replay(
        self, transaction: Transaction, caller: Caller, submission: Submission, key: str | None
    ) -> Accepted | None:
        """Find the request that this key already made, if the body is the same."""
        if key is None:
            return None
        claimed = transaction.execute(
            select(OperationKey.fingerprint, OperationKey.request_id).where(
                OperationKey.user_id == caller.user_id,
                OperationKey.scope == _scope(caller, submission.address),
                OperationKey.key == key,
            )
        ).one_or_none()
        if claimed is None:
            return None
        if claimed.fingerprint != fingerprint(submission.chat):
            raise OperationKeyMismatch("This operation key was used with another body. A new request needs a new key.")
        status = find_status(transaction, claimed.request_id, self._online.pool(transaction))
        return Accepted(id=claimed.request_id, kudos=status.quote, status=status.status, replayed=True)

    def _plan(self, transaction: Transaction, chat: ChatRequest) -> Plan:
        screened = self._filters.moderation(transaction).screened(chat)
        asked = sized(screened, chat.max_tokens or self._runtime.settings.default_max_tokens)
        pool = self._pool_with_somebody(transaction, asked.requirements)
        if len(chat.models) > 1:
            require_known(transaction, chat.models, pool)
        fitting = fitted_to(pool.declarations, asked)
        requirements = fitting.requirements
        price = max(
            quote(requirements.max_length, requirements.max_context_length, billions(model)) for model in chat.models
        )
        cap = chat.horde.max_kudos
        if cap is not None and kudos(price) > cap:
            raise KudosCapExceeded(
                f"This request may cost up to {kudos(price)} kudos, above horde.max_kudos {cap}. "
                "Raise the cap or lower max_tokens.",
                param="horde.max_kudos",
                metadata={"quote": kudos(price), "max_kudos": cap},
            )
        return Plan(
            chat=fitting.chat,
            requirements=requirements,
            context_tokens=fitting.context_tokens,
            prompt=fitting.prompt,
            submitted_prompt=asked.prompt,
            quote=price,
            warnings=fitting.warnings,
        )

    def _pool_with_somebody(self, transaction: Transaction, requirements: Requirements) -> OnlinePool:
        """Return the pool if a chat worker of a listed model is online.

        A refusal is made on a fresh look only, so a worker that came a moment ago counts.
        """
        pool = self._online.pool(transaction)
        if pool.availability(requirements).eligible_workers:
            return pool
        pool = self._online.fresh_pool(transaction)
        if pool.availability(requirements).online:
            return pool
        names = ", ".join(requirements.models)
        served = sorted({entry.model_id for entry in pool.declarations if entry.model_id})
        raise NoEligibleWorker(
            f"No online worker serves {names}.",
            param="model",
            metadata={"models": list(requirements.models), "online": served},
            retry_after_seconds=30,
        )

    def _store(
        self,
        transaction: Transaction,
        caller: Caller,
        submission: Submission,
        plan: Plan,
        request_id: UUID,
        key: str | None,
    ) -> bool:
        requirements = plan.requirements
        class_id = self._classes.intern(transaction, requirements)
        settings = self._runtime.settings
        row = transaction.execute(
            _STORE,
            {
                "id": request_id,
                "user_id": caller.user_id,
                "key": key,
                "scope": _scope(caller, submission.address),
                "fingerprint": fingerprint(submission.chat) if key else None,
                "class_id": class_id,
                "requirements": Jsonb(requirements.stored()),
                "max_length": requirements.max_length,
                "max_context_length": requirements.max_context_length,
                "images": requirements.images,
                "tools": requirements.tools,
                "tools_temperature": requirements.tools_temperature,
                "context_tokens": plan.context_tokens,
                "job_ttl_seconds": job_ttl_seconds(
                    max_length=requirements.max_length,
                    context_tokens=plan.context_tokens,
                    floor=settings.generation_ttl_floor_seconds,
                ),
                "conformance": plan.chat.horde.conformance,
                "quote": plan.quote,
                "balance": caller.balance,
                "ageing": AGEING_MILLIKUDOS_PER_SECOND,
                "ttl": request_ttl_seconds(
                    deadline=submission.deadline_seconds,
                    default=settings.request_ttl_seconds,
                    margin=settings.expiry_margin_seconds,
                ),
                "contract": Jsonb(plan.chat.stored()),
                "prompt": plan.prompt,
                "submitted_prompt": plan.submitted_prompt,
            },
        ).one_or_none()
        if row is None:
            return False
        signal = QueueSignal(class_id=class_id, requirements=requirements.stored())
        transaction.after_commit(lambda: reach(FaultPoint.REQUEST_STORED))
        transaction.after_commit(lambda: self._runtime.bus.publish_queue(signal))
        return True


_STORE = text(
    """
    WITH claimed AS (
        INSERT INTO operation_keys (user_id, scope, key, fingerprint, request_id)
        SELECT :user_id, :scope, CAST(:key AS text), CAST(:fingerprint AS text), :id
        WHERE CAST(:key AS text) IS NOT NULL
        ON CONFLICT DO NOTHING
        RETURNING request_id
    ), wanted AS (
        SELECT request_id AS id FROM claimed
        UNION ALL
        SELECT CAST(:id AS uuid) WHERE CAST(:key AS text) IS NULL
    ), made AS (
        INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, sort_key, expires_at)
        SELECT id, :user_id, true, 'queued', :class_id, :requirements, :max_length, :max_context_length,
            :context_tokens, :job_ttl_seconds, :conformance, :quote,
            extract(epoch FROM now()) * CAST(:ageing AS float8) - CAST(:balance AS float8),
            now() + make_interval(secs => :ttl)
        FROM wanted
        RETURNING id, class_id, sort_key, max_length, max_context_length
    ), bodies AS (
        INSERT INTO request_bodies (request_id, contract, prompt, submitted_prompt)
        SELECT id, :contract, :prompt, :submitted_prompt FROM made
    )
    INSERT INTO queue_entries (request_id, class_id, sort_key, max_length, max_context_length,
        images, tools, tools_temperature)
    SELECT id, class_id, sort_key, max_length, max_context_length, :images, :tools, :tools_temperature FROM made
    RETURNING request_id
    """
)


def _scope(caller: Caller, address: str) -> str:
    """Return what keeps anonymous requesters' keys apart: the address they come from (details D18)."""
    return address if caller.is_anonymous else ""


def _checked_key(submission: Submission, caller: Caller) -> str | None:
    key = submission.operation_key
    if key is None:
        return None
    shortest = ANONYMOUS_KEY_LENGTH if caller.is_anonymous else 1
    if not shortest <= len(key) <= 255 or not key.isprintable():
        raise BadRequest(f"operation_key: must have {shortest} to 255 printable characters.", param="operation_key")
    return key
