"""Stores that a generation delivered: amounts, the request's counters, and its end, in one statement (details D8)."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.pricing import REQUEST_TAX
from app.domain.request_status import CHARGE_BASIS
from app.domain.states import GenerationState, RequestState
from app.services.transitions import LIVES_ON, guard


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A reply that is accepted. `charge` is without the request's tax; amounts are millikudos."""

    generation_id: UUID
    request_id: UUID
    tokens: int
    charge: int
    reward: int


def accept(transaction: Transaction, delivery: Delivery, sources: Iterable[GenerationState], life: int = 0) -> bool:
    """Accept a reply of a generation in one of these states.

    `life` is how long a text request with further slots lives on, in seconds. False when it is in
    another state, or its request takes no more replies. Raises IntegrityError when another generation
    delivered its slot.
    """
    allowed = guard(GenerationState.VERIFIED)
    row = transaction.execute(
        _ACCEPT,
        {
            "id": delivery.generation_id,
            "request_id": delivery.request_id,
            "tokens": delivery.tokens,
            "charge": delivery.charge,
            "tax": REQUEST_TAX,
            "reward": delivery.reward,
            "charge_basis": CHARGE_BASIS,
            "sources": [source.value for source in sources if source in allowed],
            "open": guard(RequestState.DONE),
            "life": life,
            "takes": [*guard(RequestState.DONE), RequestState.CANCELLED.value],
        },
    ).one_or_none()
    return row is not None


# The request's row is locked first, as everywhere; the unique index over accepted
# generations has the last word when two replies race for one slot. A late reply takes
# its slot out of the queue again; an entry that a claim holds is left to that claim,
# which then finds the request ended. The first delivery bears the request's tax.
_ACCEPT = text(
    f"""
    WITH locked AS (
        SELECT id, finished FROM horde_requests
        WHERE id = :request_id AND state = ANY(CAST(:takes AS text[])) FOR UPDATE
    ), accepted AS (
        UPDATE generations g SET state = 'verified', ended_at = now(), tokens = :tokens, reward = :reward,
            charge = CAST(:charge AS bigint) + CASE WHEN locked.finished = 0 THEN CAST(:tax AS bigint) ELSE 0 END,
            charge_basis = :charge_basis, attempts = 0, next_dispatch_at = now(),
            submitted_at = COALESCE(g.submitted_at, now())
        FROM locked
        WHERE g.id = :id AND g.state = ANY(CAST(:sources AS text[]))
        RETURNING g.request_id, g.slot
    ), dequeued AS (
        DELETE FROM queue_entries q
        WHERE q.request_id = :request_id AND q.slot = (
            SELECT e.slot FROM queue_entries e
            WHERE e.request_id = :request_id AND e.slot = (SELECT slot FROM accepted)
            FOR UPDATE SKIP LOCKED)
        RETURNING q.slot
    ), left_over AS (
        SELECT accepted.request_id, (SELECT count(*) FROM dequeued) AS dequeued FROM accepted
    )
    UPDATE horde_requests r SET
        finished = r.finished + 1,
        waiting = r.waiting - left_over.dequeued,
        expires_at = {LIVES_ON},
        state = CASE
            WHEN r.state <> ALL(CAST(:open AS text[])) THEN r.state
            WHEN r.finished + 1 >= r.n THEN 'done'
            WHEN r.waiting - left_over.dequeued = 0 THEN 'processing'
            ELSE r.state END,
        ended_at = CASE
            WHEN r.state = ANY(CAST(:open AS text[])) AND r.finished + 1 >= r.n THEN now() ELSE r.ended_at END
    FROM left_over
    WHERE r.id = left_over.request_id
    RETURNING r.state
    """  # noqa: S608 - a constant
)
