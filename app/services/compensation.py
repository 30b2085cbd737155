"""Pays a worker whose reply the horde itself could not judge; nobody is charged for it (details D13)."""

from uuid import UUID

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.model_sizes import billions
from app.domain.pricing import Sizes, reply_amounts
from app.domain.system_accounts import HORDE_ID
from app.domain.verification import Reply
from app.models.ledger import Pocket


def compensate(transaction: Transaction, generation_id: UUID) -> int:
    """Book what the stored reply would have earned, once; return it in millikudos, 0 when there is no reply."""
    row = transaction.execute(_REPLY, {"id": generation_id}).one_or_none()
    if row is None:
        return 0
    sizes = Sizes(row.max_length, row.context_tokens, row.max_context_length, billions(row.model))
    earned = reply_amounts(Reply.from_stored(row.body).characters, sizes).reward
    transaction.execute(
        _PAY,
        {
            "key": f"compensation:{generation_id}",
            "owner": row.owner_id,
            "pocket": (Pocket.SPENDABLE if row.trusted else Pocket.ESCROW).value,
            "amount": earned,
            "horde": HORDE_ID,
        },
    )
    return earned


_REPLY = text(
    """
    SELECT g.model, r.max_length, r.context_tokens, r.max_context_length, y.body, w.user_id AS owner_id, u.trusted
    FROM generations g
    JOIN horde_requests r ON r.id = g.request_id
    JOIN workers w ON w.id = g.worker_id
    JOIN users u ON u.id = w.user_id
    JOIN replies y ON y.generation_id = g.id
    WHERE g.id = :id
    """
)

_PAY = text(
    """
    INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount)
    VALUES (:key, 'compensation', :owner, :pocket, :amount),
           (:key, 'compensation_paid', :horde, 'spendable', -CAST(:amount AS bigint))
    ON CONFLICT DO NOTHING
    """
)
