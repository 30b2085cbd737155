"""Takes a bridge's text reply: stored, priced and accepted in one transaction, without verification (details D8)."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog
from psycopg.types.json import Jsonb
from sqlalchemy import Row, text
from sqlalchemy.exc import IntegrityError

from app.adapters.database import Transaction
from app.domain.errors import AbortedGen, BadRequest
from app.domain.model_sizes import billions
from app.domain.pricing import Sizes, charge, kudos, reply_amounts
from app.domain.redis_keys import ChatEvent
from app.domain.states import GenerationState
from app.domain.task_names import TaskName
from app.domain.text_reply import TextReply
from app.services.accept import Delivery, accept
from app.services.faults import Failure, fail_generation
from app.services.runtime import Runtime
from app.services.submit_reply import Receipt, load_job
from app.services.verify_generation import SETTLEMENT_DEBOUNCE_KEY, SETTLEMENT_DEBOUNCE_MILLISECONDS

log = structlog.get_logger(__name__)

ACCEPTED = frozenset({GenerationState.VERIFIED, GenerationState.SETTLED})
OPEN = (GenerationState.LEASED, GenerationState.TIMED_OUT)


class SubmitTextReply:
    """The use case of a text job's submit."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __call__(self, api_key: str, generation_id: UUID, reply: TextReply) -> Receipt:
        """Accept a reply once, however often it is sent, and report its reward.

        Raises InvalidApiKey, InvalidJobId, WrongCredentials, BadRequest for a chat job, or
        AbortedGen when the job had another end.
        """
        try:
            with self._runtime.database.transaction() as transaction:
                return self._deliver(transaction, api_key, generation_id, reply)
        except IntegrityError:
            self._supersede(generation_id)
            raise _aborted() from None

    def _deliver(self, transaction: Transaction, api_key: str, generation_id: UUID, reply: TextReply) -> Receipt:
        job = load_job(transaction, api_key, generation_id)
        if job.is_chat:
            raise BadRequest("generation: this is a chat job; submit its reply as 'message'.", param="generation")
        if job.state in ACCEPTED:
            return Receipt(kudos(job.reward))
        row = transaction.execute(_SIZES, {"id": generation_id}).one()
        delivery = _priced(row, reply)
        if not accept(transaction, delivery, OPEN, self._runtime.settings.request_ttl_seconds):
            # The twin of this submit may have been a moment faster.
            again = load_job(transaction, api_key, generation_id)
            if again.state in ACCEPTED:
                return Receipt(kudos(again.reward))
            raise _aborted()
        transaction.execute(_STORE, {"id": generation_id, "body": Jsonb(reply.stored())})
        transaction.after_commit(lambda: self._announce(row.request_id))
        log.info("reply.accepted", generation_id=str(generation_id), request_id=str(row.request_id))
        return Receipt(kudos(delivery.reward))

    def _announce(self, request_id: UUID) -> None:
        bus = self._runtime.bus
        bus.publish_chat(request_id, ChatEvent.GENERATION)
        if bus.first_in(SETTLEMENT_DEBOUNCE_KEY, SETTLEMENT_DEBOUNCE_MILLISECONDS):
            self._runtime.sender.send(TaskName.SETTLE_BATCH)

    def _supersede(self, generation_id: UUID) -> None:
        """End a job whose slot another one delivered first."""
        with self._runtime.database.transaction() as transaction:
            fail_generation(self._runtime, transaction, generation_id, Failure(GenerationState.FAULTED, "superseded"))


def _priced(row: Row[Any], reply: TextReply) -> Delivery:
    """Price a reply by its characters; a censored one earns nothing and costs its fee (wire reference 4.3)."""
    sizes = Sizes(row.max_length, row.context_tokens, row.max_context_length, billions(row.model))
    amounts = reply_amounts(len(reply.text), sizes)
    if reply.state != "ok":
        amounts = replace(amounts, charge=charge(0), reward=0)
    return Delivery(
        generation_id=row.id,
        request_id=row.request_id,
        tokens=amounts.tokens,
        charge=amounts.charge,
        reward=amounts.reward,
    )


def _aborted() -> AbortedGen:
    return AbortedGen("This job has ended: it was faulted, timed out, or already submitted by another worker. Drop it.")


_SIZES = text(
    """
    SELECT g.id, g.request_id, g.model, r.max_length, r.max_context_length, r.context_tokens
    FROM generations g JOIN horde_requests r ON r.id = g.request_id
    WHERE g.id = :id
    """
)

_STORE = text("INSERT INTO replies (generation_id, body) VALUES (:id, :body)")
