"""Takes a text request of an existing client (wire reference 2.1): into the same queue as chat."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import structlog
from prometheus_client import Counter
from sqlalchemy import select

from app.adapters.database import Transaction
from app.domain.errors import (
    HordeError,
    KudosUpfront,
    RequiresTrust,
    ServiceUnavailable,
    SharedKeyEmpty,
    SharedKeyInsufficientKudos,
    WorkerNotFound,
)
from app.domain.fingerprint import text_fingerprint
from app.domain.model_sizes import billions
from app.domain.pricing import kudos, text_quote
from app.domain.refused_words import found_words
from app.domain.system_accounts import ANONYMOUS_KEY
from app.domain.text_request import TextRequest, stored_contract
from app.models import HordeRequest, Worker
from app.services.accounts import Caller, authenticate
from app.services.admission import Asked, Terms, check_key, terms_of
from app.services.filters import Filters
from app.services.online import OnlinePool, OnlineWorkers
from app.services.operation_keys import Repeatable, claimed_before
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime
from app.services.store_request import Claim, NewRequest, store_request

SIZE_OF_ANY_MODEL = 13.0
"""Billions that a request is quoted for when it takes any model (wire reference 4.4)."""

NEVER_REPEATED = Repeatable()

ACCEPTED = Counter("horde_text_requests_accepted", "Text requests stored.")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AcceptedText:
    """What the requester is told; a message only when nobody online could serve the request."""

    id: UUID
    kudos: int
    message: str | None = None
    replayed: bool = False


class SubmitText:
    """The use case, with what this process remembers between calls."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers, classes: RequirementClasses) -> None:
        self._runtime = runtime
        self._online = online
        self._classes = classes
        self._filters = Filters()

    def quote(self, api_key: str, wanted: TextRequest) -> int:
        """Return what the request would cost at most, in whole kudos, and store nothing.

        Raises InvalidApiKey, WorkerNotFound, RequiresTrust or CorruptPrompt.
        """
        with self._runtime.database.statements() as transaction:
            caller = authenticate(transaction, api_key)
            wanted = self._checked(transaction, caller, wanted)
        return round(kudos(_price(wanted)))

    def __call__(self, api_key: str, wanted: TextRequest, repeatable: Repeatable = NEVER_REPEATED) -> AcceptedText:
        """Store the request and let workers have it, also when none of them is online now.

        With an operation key, the same key and body again answer the first request.
        Raises InvalidApiKey, OperationKeyMismatch, WorkerNotFound, RequiresTrust, CorruptPrompt, BadRequest,
        TooManyPrompts, KudosUpfront or a SharedKey refusal, with nothing stored or held.
        """
        with self._runtime.database.statements() as transaction:
            caller = authenticate(transaction, api_key)
            try:
                accepted = self._submit(transaction, caller, wanted, repeatable)
            except (SharedKeyEmpty, SharedKeyInsufficientKudos):
                if not wanted.allow_downgrade:
                    raise
                # The key pays no more: the request goes on as anybody's, last in line (wire reference 4.8).
                accepted = self._submit(transaction, authenticate(transaction, ANONYMOUS_KEY), wanted, repeatable)
        if not accepted.replayed:
            ACCEPTED.inc()
        return accepted

    def _submit(
        self, transaction: Transaction, caller: Caller, wanted: TextRequest, repeatable: Repeatable
    ) -> AcceptedText:
        claim = repeatable.claim(caller, lambda: text_fingerprint(wanted))
        try:
            accepted = self._admit(transaction, caller, self._checked(transaction, caller, wanted), claim)
        except HordeError:
            # What a new request would be refused for does not touch one that was accepted before.
            replayed = self._replay(transaction, caller, claim)
            if replayed is None:
                raise
            return replayed
        accepted = accepted or self._replay(transaction, caller, claim)
        if accepted is None:
            raise ServiceUnavailable("The submit with this operation key was just withdrawn. Send it again.")
        return accepted

    @staticmethod
    def _replay(transaction: Transaction, caller: Caller, claim: Claim | None) -> AcceptedText | None:
        """Find the request that this key already made, if the body is the same."""
        request_id = claimed_before(transaction, caller, claim)
        if request_id is None:
            return None
        quoted = transaction.execute(select(HordeRequest.quote).where(HordeRequest.id == request_id)).scalar_one()
        return AcceptedText(request_id, round(kudos(quoted)), replayed=True)

    def _admit(
        self, transaction: Transaction, caller: Caller, wanted: TextRequest, claim: Claim | None
    ) -> AcceptedText | None:
        """Store the request, cheaper where its sender would have it so and has not the kudos for more.

        None when its operation key is taken.
        """
        check_key(caller, wanted.max_length, param="params.max_length")
        pool = self._online.pool(transaction)
        terms = self._terms(transaction, pool, caller, wanted)
        try:
            return self._store(transaction, pool, caller, wanted, terms, claim)
        except KudosUpfront:
            if not wanted.allow_downgrade:
                raise
        cheaper = replace(wanted, max_length=min(terms.free_cap, wanted.max_length), slow_workers=True)
        terms = self._terms(transaction, pool, caller, cheaper, downgraded=True)
        return self._store(transaction, pool, caller, cheaper, terms, claim)

    def _terms(
        self,
        transaction: Transaction,
        pool: OnlinePool,
        caller: Caller,
        wanted: TextRequest,
        *,
        downgraded: bool = False,
    ) -> Terms:
        asked = Asked(
            models=wanted.models,
            max_length=wanted.max_length,
            quote=_price(wanted),
            slow_workers=wanted.slow_workers,
            n=wanted.n,
        )
        settings, threads = self._runtime.settings, pool.threads
        return terms_of(transaction, settings, caller, asked, threads=threads, downgraded=downgraded)

    def _store(
        self,
        transaction: Transaction,
        pool: OnlinePool,
        caller: Caller,
        wanted: TextRequest,
        terms: Terms,
        claim: Claim | None,
    ) -> AcceptedText | None:
        requirements = wanted.requirements(found_words(wanted.prompt, pool.refused_words))
        new = NewRequest(
            id=uuid4(),
            caller=caller,
            terms=terms,
            requirements=requirements,
            context_tokens=wanted.context_tokens,
            conformance="best_effort",
            ttl_seconds=self._runtime.settings.request_ttl_seconds,
            contract=stored_contract(wanted),
            prompt=wanted.prompt,
            submitted_prompt=wanted.prompt,
            operation=claim,
        )
        if store_request(self._runtime, transaction, self._classes, new) is None:
            return None
        possible = self._online.standing(transaction, requirements)[0].eligible_workers > 0
        log.info("request.accepted", request_id=str(new.id), max_length=wanted.max_length, n=wanted.n)
        return AcceptedText(new.id, round(kudos(terms.quote)), None if possible else _NOBODY)

    def _checked(self, transaction: Transaction, caller: Caller, wanted: TextRequest) -> TextRequest:
        """Return the request as moderation lets it go on, in the wire reference's order of checks."""
        self._check_workers(transaction, wanted.workers)
        if wanted.disable_batching and wanted.n > 1 and not caller.trusted:
            raise RequiresTrust(
                "disable_batching with params.n above 1 is for trusted accounts. Leave it out, or ask for one.",
                param="disable_batching",
            )
        return self._filters.moderation(transaction).screened_text(wanted)

    @staticmethod
    def _check_workers(transaction: Transaction, workers: Sequence[str]) -> None:
        """Raise WorkerNotFound unless there is a worker of every id."""
        for worker in workers:
            try:
                found = transaction.execute(select(Worker.id).where(Worker.id == UUID(worker))).first()
            except ValueError:
                found = None
            if found is None:
                raise WorkerNotFound(f"workers: there is no worker with the id '{worker[:100]}'.", param="workers")


_NOBODY = "No worker that is online now can take this request. It waits for one until it expires."


def _price(wanted: TextRequest) -> int:
    size = max((billions(model) for model in wanted.models), default=SIZE_OF_ANY_MODEL)
    return text_quote(wanted.max_length, wanted.max_context_length, size, wanted.n)
