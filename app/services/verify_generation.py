"""Judges a submitted reply against its request's contract, and computes what it costs (contract C6, details D8).

Three steps: note the attempt and commit, judge with no lock held, then one
guarded move that stores verdict and amounts together. Run twice, late or at
once, it comes to the same rows.
"""

from typing import Any
from uuid import UUID

import structlog
from prometheus_client import Counter
from psycopg.types.json import Jsonb
from sqlalchemy import Row, text
from sqlalchemy.exc import IntegrityError

from app.adapters.database import Transaction
from app.domain.contract import ChatRequest
from app.domain.errors import ChatReplyRefused
from app.domain.model_sizes import billions
from app.domain.pricing import Amounts, Sizes, kudos, reply_amounts
from app.domain.states import GenerationState
from app.domain.task_names import TaskName
from app.domain.verification import Reply, verify
from app.services.accept import Delivery, accept
from app.services.faults import Failure, fail_generation
from app.services.runtime import Runtime
from config.fault_points import FaultPoint, reach
from config.metrics import begin_at_zero

SETTLEMENT_DEBOUNCE_MILLISECONDS = 200
SETTLEMENT_DEBOUNCE_KEY = "horde:settlement:kicked"
REFUSAL_LENGTH = 1000

VERDICTS = Counter("horde_verdicts", "Replies judged.", ["verdict"])
begin_at_zero(VERDICTS, "accepted", "refused")

log = structlog.get_logger(__name__)


def verify_generation(runtime: Runtime, generation_id: UUID) -> None:
    """Verify a submitted generation; a no-op for one that is in any other state."""
    with runtime.database.statements() as transaction:
        row = transaction.execute(
            _BEGIN, {"id": generation_id, "rescue": runtime.settings.rescue_after_seconds}
        ).one_or_none()
    reach(FaultPoint.VERIFICATION_BEGUN)
    if row is None:
        return
    submitted = Reply.from_stored(row.body)
    try:
        kept = verify(ChatRequest.from_stored(row.contract), submitted, max_length=row.max_length)
    except ChatReplyRefused as refusal:
        _refuse(runtime, row, refusal.message)
        return
    _accept(runtime, row, kept, changed=kept != submitted)


def price(row: Row[Any], reply: Reply) -> Amounts:
    """Price a reply by its characters (native-api N5, details D8)."""
    sizes = Sizes(row.max_length, row.context_tokens, row.max_context_length, billions(row.model))
    return reply_amounts(reply.characters, sizes)


def _accept(runtime: Runtime, row: Row[Any], reply: Reply, *, changed: bool) -> None:
    amounts = price(row, reply)
    # Nearly always the verdict is whole in one statement, which then needs no transaction around it.
    try:
        with runtime.database.transaction() if changed else runtime.database.statements() as transaction:
            accepted = _store_verdict(transaction, row, reply, amounts, changed=changed)
            if accepted:
                _announce(runtime, transaction, row.id, row.request_id, {"reward": kudos(amounts.reward)})
    except IntegrityError:
        # Another generation of this request was accepted while this one waited for its lock.
        accepted = False
    if not accepted:
        _supersede(runtime, row)
        return
    VERDICTS.labels("accepted").inc()
    log.info("generation.verified", generation_id=str(row.id), request_id=str(row.request_id), tokens=amounts.tokens)
    if runtime.bus.first_in(SETTLEMENT_DEBOUNCE_KEY, SETTLEMENT_DEBOUNCE_MILLISECONDS):
        runtime.sender.send(TaskName.SETTLE_BATCH)


def _store_verdict(transaction: Transaction, row: Row[Any], reply: Reply, amounts: Amounts, *, changed: bool) -> bool:
    delivery = Delivery(
        generation_id=row.id,
        request_id=row.request_id,
        tokens=amounts.tokens,
        charge=amounts.charge,
        reward=amounts.reward,
    )
    if not accept(transaction, delivery, [GenerationState.SUBMITTED]):
        return False
    if changed:
        transaction.execute(
            text("UPDATE replies SET body = :body WHERE generation_id = :id"),
            {"id": row.id, "body": Jsonb(reply.stored())},
        )
    return True


def _refuse(runtime: Runtime, row: Row[Any], message: str) -> None:
    refusal = message[:REFUSAL_LENGTH]
    why = Failure(GenerationState.REFUSED, "reply_refused", refusal)
    with runtime.database.transaction() as transaction:
        if fail_generation(runtime, transaction, row.id, why):
            transaction.after_commit(lambda: runtime.bus.put_verdict(row.id, {"refusal": refusal}))
    VERDICTS.labels("refused").inc()


def _supersede(runtime: Runtime, row: Row[Any]) -> None:
    """End a generation whose request another one delivered; nothing is charged for it."""
    why = Failure(GenerationState.FAULTED, "superseded")
    with runtime.database.transaction() as transaction:
        if fail_generation(runtime, transaction, row.id, why):
            transaction.after_commit(lambda: runtime.bus.put_verdict(row.id, {"aborted": True}))


def _announce(
    runtime: Runtime, transaction: Transaction, generation_id: UUID, request_id: UUID, verdict: dict[str, object]
) -> None:
    def tell() -> None:
        reach(FaultPoint.VERDICT_STORED)
        runtime.bus.put_verdict(generation_id, verdict, delivered=request_id)
        reach(FaultPoint.VERDICT_SIGNALLED)

    transaction.after_commit(tell)


_BEGIN = text(
    """
    UPDATE generations g SET attempts = g.attempts + 1,
        next_dispatch_at = now() + make_interval(secs => :rescue * power(2, least(g.attempts, 6)))
    FROM horde_requests r, request_bodies b, replies y
    WHERE g.id = :id AND g.state = 'submitted'
      AND r.id = g.request_id AND b.request_id = r.id AND y.generation_id = g.id
    RETURNING g.id, g.request_id, g.model, r.max_length, r.max_context_length,
        r.context_tokens, b.contract, y.body
    """
)
