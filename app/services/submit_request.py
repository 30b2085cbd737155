"""Takes a chat request: checked in the order of details D1, stored in one transaction, answered with its status."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import structlog
from prometheus_client import Counter

from app.adapters.database import Transaction
from app.domain.capabilities import Requirements
from app.domain.contract import ChatRequest
from app.domain.errors import (
    HordeError,
    KudosCapExceeded,
    KudosUpfront,
    NoEligibleWorker,
    ServiceUnavailable,
    SharedKeyEmpty,
    SharedKeyInsufficientKudos,
)
from app.domain.fingerprint import fingerprint
from app.domain.lifetimes import request_ttl_seconds
from app.domain.model_sizes import billions
from app.domain.narrowing import may_stream
from app.domain.pricing import kudos, quote
from app.domain.refused_words import found_words
from app.domain.sizing import fitted_to, sized
from app.domain.states import RequestState
from app.domain.system_accounts import ANONYMOUS_KEY
from app.services.accounts import Caller, authenticate
from app.services.admission import Asked, Terms, check_key, terms_of
from app.services.filters import Filters
from app.services.known_models import require_known
from app.services.online import OnlinePool, OnlineWorkers
from app.services.operation_keys import Repeatable, claimed_before, is_claimed
from app.services.queue_info import Waiting
from app.services.request_status import Statuses
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime
from app.services.stage_images import Lifted, NewMedia, StageImages
from app.services.store_request import Claim, NewRequest, Stored, store_request
from config.fault_points import FaultPoint, reach

REQUESTS_ACCEPTED = Counter("horde_requests_accepted", "Chat requests stored.")

log = structlog.get_logger(__name__)


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
    downgraded: bool = False
    media: NewMedia | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A submission whose sender is known, and the id that its request will have."""

    caller: Caller
    submission: Submission
    lifted: Lifted
    request_id: UUID
    claim: Claim | None


class SubmitRequest:
    """The use case, with what this process remembers between calls."""

    def __init__(
        self, runtime: Runtime, online: OnlineWorkers, classes: RequirementClasses, statuses: Statuses
    ) -> None:
        self._runtime = runtime
        self._online = online
        self._classes = classes
        self._statuses = statuses
        self._filters = Filters()
        self._images = StageImages(runtime)

    def quote(self, submission: Submission) -> float:
        """Return what the request would cost at most, in kudos, and store nothing."""
        lifted = self._images.lifted(submission.chat)
        with self._runtime.database.statements() as transaction:
            caller = authenticate(transaction, submission.api_key)
            return kudos(self._plan(transaction, caller, lifted.chat).quote)

    def __call__(self, submission: Submission) -> Accepted:
        """Store the request and let a worker have it.

        With an operation key, the same key and body again answer the first request.
        Raises InvalidApiKey, OperationKeyMismatch, CorruptPrompt, NoEligibleWorker,
        ContractRefusal for an unknown model in a list, KudosCapExceeded, TooManyPrompts,
        KudosUpfront, StorageUnavailable or a SharedKey refusal, with nothing stored or held.
        """
        lifted = self._images.lifted(submission.chat)
        with self._runtime.database.statements() as transaction:
            caller = authenticate(transaction, submission.api_key)
            try:
                accepted = self._submit(transaction, caller, submission, lifted)
            except (SharedKeyEmpty, SharedKeyInsufficientKudos):
                if not submission.chat.horde.allow_downgrade:
                    raise
                # The key pays no more: the request goes on as anybody's, last in line (wire reference 4.8).
                accepted = self._submit(transaction, authenticate(transaction, ANONYMOUS_KEY), submission, lifted)
        if not accepted.replayed:
            reach(FaultPoint.REQUEST_SIGNALLED)
            REQUESTS_ACCEPTED.inc()
        return accepted

    def _submit(self, transaction: Transaction, caller: Caller, submission: Submission, lifted: Lifted) -> Accepted:
        arrival = Arrival(
            caller=caller,
            submission=submission,
            lifted=lifted,
            request_id=submission.proposed_id or uuid4(),
            claim=Repeatable(submission.operation_key, submission.address).claim(
                caller, lambda: fingerprint(submission.chat)
            ),
        )
        try:
            plan = self._plan(transaction, caller, lifted.chat)
            admitted = self._admit(transaction, arrival, plan)
        except HordeError:
            # What a new request would be refused for does not touch one that was accepted before.
            replayed = self._replay(transaction, arrival)
            if replayed is None:
                raise
            return replayed
        if admitted is None:
            replayed = self._replay(transaction, arrival)
            if replayed is None:
                raise ServiceUnavailable("The submit with this operation key was just withdrawn. Send it again.")
            return replayed
        return self._accepted(transaction, arrival.request_id, *admitted)

    def _admit(self, transaction: Transaction, arrival: Arrival, plan: Plan) -> tuple[Plan, Stored] | None:
        """Stage its images and store the request; None when its operation key is taken.

        Whatever refuses it here takes the staged images away again.
        """
        # A used key uploads nothing again (native-api N1).
        if arrival.lifted.images and is_claimed(transaction, arrival.caller, arrival.claim):
            return None
        media = self._images.staged(arrival.lifted, plan.chat.messages)
        try:
            admitted = self._stored(transaction, arrival, replace(plan, media=media))
        except HordeError:
            if media is not None:
                self._images.discard(media)
            raise
        if admitted is None and media is not None:
            self._images.discard(media)
        return admitted

    def _stored(self, transaction: Transaction, arrival: Arrival, plan: Plan) -> tuple[Plan, Stored] | None:
        """Store the request, cheaper if it cannot be had as asked; None when its operation key is taken."""
        terms = self._terms(transaction, arrival.caller, plan)
        try:
            stored = self._store(transaction, arrival, plan, terms)
        except KudosUpfront:
            cheaper = _cheaper(plan, terms.free_cap)
            if cheaper is None:
                raise
            plan, terms = cheaper, self._terms(transaction, arrival.caller, cheaper)
            stored = self._store(transaction, arrival, plan, terms)
        return None if stored is None else (plan, stored)

    def _terms(self, transaction: Transaction, caller: Caller, plan: Plan) -> Terms:
        asked = Asked(
            models=plan.chat.models,
            max_length=plan.requirements.max_length,
            quote=plan.quote,
            slow_workers=plan.chat.horde.slow_workers,
        )
        threads = self._online.last.threads
        return terms_of(transaction, self._runtime.settings, caller, asked, threads=threads, downgraded=plan.downgraded)

    def _accepted(self, transaction: Transaction, request_id: UUID, plan: Plan, stored: Stored) -> Accepted:
        waiting = Waiting(requirements=plan.requirements, sort_key=stored.sort_key, created_at=stored.created_at)
        state = RequestState.PREPARING if plan.media and plan.media.sources else RequestState.QUEUED
        status = self._statuses.of_new(transaction, request_id, waiting, state)
        log.info("request.accepted", request_id=str(request_id), max_length=plan.requirements.max_length)
        return Accepted(
            id=request_id,
            kudos=kudos(plan.quote),
            status=status,
            warnings=plan.warnings,
        )

    def _replay(self, transaction: Transaction, arrival: Arrival) -> Accepted | None:
        """Find the request that this key already made, if the body is the same."""
        request_id = claimed_before(transaction, arrival.caller, arrival.claim)
        if request_id is None:
            return None
        status = self._statuses.find(transaction, request_id)
        return Accepted(id=request_id, kudos=status.quote, status=status.status, replayed=True)

    def _plan(self, transaction: Transaction, caller: Caller, chat: ChatRequest) -> Plan:
        screened = self._filters.moderation(transaction).screened(chat)
        length = chat.max_tokens or caller.key.at_most(self._runtime.settings.default_max_tokens)
        check_key(caller, length, param="max_tokens")
        asked = sized(screened, length)
        pool = self._pool_with_somebody(transaction, asked.requirements)
        if len(chat.models) > 1:
            require_known(transaction, chat.models, pool)
        fitting = fitted_to([each.declaration for each in pool.serving(asked.requirements)], asked)
        price = _price(chat, fitting.requirements)
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
            requirements=replace(fitting.requirements, refused_words=found_words(fitting.prompt, pool.refused_words)),
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

    def _store(self, transaction: Transaction, arrival: Arrival, plan: Plan, terms: Terms) -> Stored | None:
        settings = self._runtime.settings
        new = NewRequest(
            id=arrival.request_id,
            caller=arrival.caller,
            terms=terms,
            requirements=plan.requirements,
            context_tokens=plan.context_tokens,
            conformance=plan.chat.horde.conformance,
            ttl_seconds=request_ttl_seconds(
                deadline=arrival.submission.deadline_seconds,
                default=settings.request_ttl_seconds,
                margin=settings.expiry_margin_seconds,
            ),
            contract=plan.chat.stored(),
            prompt=plan.prompt,
            submitted_prompt=plan.submitted_prompt,
            operation=arrival.claim,
            streams=may_stream(plan.chat),
            media=plan.media,
        )
        return store_request(self._runtime, transaction, self._classes, new)


def _price(chat: ChatRequest, requirements: Requirements) -> int:
    """Return the most that the request can cost, on the dearest of its models."""
    return max(
        quote(requirements.max_length, requirements.max_context_length, billions(model)) for model in chat.models
    )


def _cheaper(plan: Plan, cap: int) -> Plan | None:
    """Return the request as it needs no kudos held; None when its sender would not have it so (details D1)."""
    chat, downgraded = plan.chat, plan.chat.horde.allow_downgrade
    if downgraded:
        chat = replace(chat, horde=replace(chat.horde, slow_workers=True))
    elif chat.max_tokens is not None or not chat.horde.slow_workers:
        return None
    requirements = replace(
        sized(chat, min(cap, plan.requirements.max_length)).requirements,
        refused_words=plan.requirements.refused_words,
    )
    warnings = plan.warnings
    if chat.max_tokens is not None and requirements.max_length < plan.requirements.max_length:
        warnings = (*warnings, f"max_tokens was lowered to {cap}: the account has no kudos to be held for more.")
    return replace(
        plan,
        chat=chat,
        requirements=requirements,
        quote=_price(chat, requirements),
        warnings=warnings,
        downgraded=downgraded,
    )
