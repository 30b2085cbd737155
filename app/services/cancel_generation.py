"""Settles a streamed generation that its client cancelled on the text that was posted (details D7, D15)."""

from typing import Any
from uuid import UUID

import structlog
from prometheus_client import Counter
from psycopg.types.json import Jsonb
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.model_sizes import billions
from app.domain.pricing import REQUEST_TAX, Sizes, cancelled_amounts
from app.domain.progress import PostedText
from app.domain.request_status import CANCELLED_FAULT, CHARGE_BASIS
from app.domain.states import GenerationState
from app.services.runtime import Runtime
from app.services.settle import settle_cancelled
from app.services.transitions import guard

CANCELLED = Counter("horde_generations_cancelled", "Streamed generations settled on what was posted.")

log = structlog.get_logger(__name__)


def streamed_job(transaction: Transaction, request_id: UUID) -> Row[Any] | None:
    """Lock a locked request's generation that a worker streams just now, and return what its price depends on."""
    return transaction.execute(_RUNNING, {"id": request_id}).one_or_none()


def cancel_generation(runtime: Runtime, transaction: Transaction, row: Row[Any], posted: PostedText) -> None:
    """Cancel and book a locked generation of a request that was just ended.

    What was posted becomes its reply; its worker is told at its next post. No fault and no
    abort is counted. Cancelled and settled are one transaction, so nothing can come between.
    """
    sizes = Sizes(row.max_length, row.context_tokens, row.max_context_length, billions(row.model))
    amounts = cancelled_amounts(posted.characters, sizes)
    transaction.execute(
        _CANCEL,
        {
            "id": row.id,
            "request_id": row.request_id,
            "sources": guard(GenerationState.CANCELLED),
            "tokens": amounts.tokens,
            # A chat request has one slot, so this is its first settled generation, which bears the tax.
            "charge": amounts.charge + (REQUEST_TAX if amounts.charge else 0),
            "reward": amounts.reward,
            "charge_basis": CHARGE_BASIS,
            "fault": CANCELLED_FAULT,
            "body": Jsonb(_reply(posted)),
        },
    ).one()
    settle_cancelled(transaction, row.id)
    transaction.after_commit(lambda: runtime.leases.cancelled(row.request_id, row.id))
    transaction.after_commit(CANCELLED.inc)
    log.info(
        "generation.cancelled",
        generation_id=str(row.id),
        request_id=str(row.request_id),
        characters=posted.characters,
    )


def _reply(posted: PostedText) -> dict[str, Any]:
    """Shape the posted text as a stored reply; it did not finish, so it has no finish reason."""
    return {
        "content": posted.content or None,
        "reasoning_content": posted.reasoning or None,
        "tool_calls": [],
        "finish_reason": None,
        "usage": None,
    }


_RUNNING = text(
    """
    SELECT g.id, g.request_id, g.model, r.max_length, r.max_context_length, r.context_tokens
    FROM generations g JOIN horde_requests r ON r.id = g.request_id
    WHERE g.request_id = :id AND g.state = 'leased' AND g.streamed
    FOR UPDATE OF g
    """
)

# The time of the cancel is where the speed sample ends.
_CANCEL = text(
    """
    WITH moved AS (
        UPDATE generations SET state = 'cancelled', ended_at = now(), submitted_at = now(), tokens = :tokens,
            charge = :charge, reward = :reward, charge_basis = :charge_basis, fault = :fault, next_dispatch_at = NULL
        WHERE id = :id AND state = ANY(CAST(:sources AS text[]))
        RETURNING id
    ), kept AS (
        INSERT INTO replies (generation_id, body) SELECT id, :body FROM moved
    )
    UPDATE horde_requests r SET finished = r.finished + 1 FROM moved WHERE r.id = :request_id
    RETURNING r.id
    """
)
