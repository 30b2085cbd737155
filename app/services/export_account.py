"""Writes down all that the horde stores of an account, for the person whose it is (decision 0076)."""

from collections.abc import Iterator, Mapping

import orjson
from sqlalchemy import TextClause, text

from app.adapters.database import Transaction
from app.services.escrow import escrow_of
from app.services.kudos import balance

AT_ONCE = 500
"""Rows that are read at a time: an account may have any number of requests."""

AMOUNTS = "Amounts of the ledger, of keys, requests and jobs are in thousandths of a kudos."
KEPT_BACK = "Digests of keys and passkeys, who reported the account and in which words, and what others asked."


def export_account(transaction: Transaction, user_id: int) -> Iterator[bytes]:
    """Yield the parts of one JSON object. The transaction has to stay open until the last one was read."""
    yield b'{"notes":' + orjson.dumps({"amounts": AMOUNTS, "not_included": KEPT_BACK})
    yield b',"kudos":' + orjson.dumps(
        {"balance": balance(transaction, user_id), "escrow": escrow_of(transaction, user_id)}
    )
    for section, statement in SECTIONS.items():
        yield b',\n"' + section.encode() + b'":['
        rows = transaction.execute(statement.execution_options(yield_per=AT_ONCE), {"id": user_id}).scalars()
        for number, row in enumerate(rows):
            yield (b",\n" if number else b"\n") + str(row).encode()
        yield b"]"
    yield b"}\n"


def _rows(query: str) -> TextClause:
    return text(f"SELECT CAST(row_to_json(found) AS text) FROM ({query}) found")  # noqa: S608 - constants of this module


_REPLIES = """
    (SELECT json_agg(json_build_object(
        'id', g.id, 'state', g.state, 'model', g.model, 'popped_at', g.popped_at, 'submitted_at', g.submitted_at,
        'ended_at', g.ended_at, 'tokens', g.tokens, 'charge', g.charge, 'fault', g.fault, 'refusal', g.refusal,
        'reply', (SELECT y.body FROM replies y WHERE y.generation_id = g.id)) ORDER BY g.popped_at)
     FROM generations g WHERE g.request_id = r.id)"""

_WORKED = "id, model, state, popped_at, submitted_at, ended_at, tokens, reward, fault"

SECTIONS: Mapping[str, TextClause] = {
    "account": _rows(
        """
        SELECT id, username, kind, trusted, moderator, flagged, education, customizer, vpn, special, deleted,
               concurrency, worker_invited, public_workers, contact, admin_comment,
               passkey_sha256 IS NOT NULL AS has_passkey, created_at, erased_at
        FROM users WHERE id = :id
        """
    ),
    "keys": _rows(
        """
        SELECT id, name, created_at, expires_at, revoked_at, kudos_limit, shared_id, max_text_tokens
        FROM api_keys WHERE user_id = :id ORDER BY id
        """
    ),
    "workers": _rows(
        """
        SELECT w.*, t.fulfilled, t.uncompleted, t.tokens, t.rewards,
               (SELECT json_object_agg(s.model, s.tokens_per_second) FROM worker_speeds s WHERE s.worker_id = w.id)
                   AS speeds
        FROM workers w LEFT JOIN worker_totals t ON t.worker_id = w.id WHERE w.user_id = :id ORDER BY w.created_at
        """
    ),
    "worker_messages": _rows(
        """
        SELECT m.* FROM worker_messages m
        WHERE m.author_id = :id OR m.worker_id IN (SELECT w.id FROM workers w WHERE w.user_id = :id)
        ORDER BY m.created_at
        """
    ),
    "requests": _rows(
        f"""
        SELECT r.*, b.contract, b.prompt, b.submitted_prompt, {_REPLIES} AS generations
        FROM horde_requests r LEFT JOIN request_bodies b ON b.request_id = r.id
        WHERE r.user_id = :id ORDER BY r.created_at
        """  # noqa: S608 - joined from constants
    ),
    "images": _rows(
        """
        SELECT m.request_id, m.sources, m.created_at FROM request_media m
        JOIN horde_requests r ON r.id = m.request_id WHERE r.user_id = :id ORDER BY m.created_at
        """
    ),
    "jobs": _rows(
        f"""
        SELECT {", ".join(f"g.{column.strip()}" for column in _WORKED.split(","))}
        FROM workers w JOIN generations g ON g.worker_id = w.id WHERE w.user_id = :id ORDER BY g.popped_at
        """  # noqa: S608 - joined from constants
    ),
    "operation_keys": _rows("SELECT scope, key, request_id, created_at FROM operation_keys WHERE user_id = :id"),
    "ledger": _rows(
        """
        SELECT id, business_key, kind, pocket, amount, tokens, key_id, created_at
        FROM ledger_entries WHERE user_id = :id ORDER BY id
        """
    ),
    "transfers": _rows(
        """
        SELECT id, source_id, target_id, amount, created_at,
               CASE WHEN source_id = :id THEN idempotency_key END AS idempotency_key
        FROM kudos_transfers WHERE source_id = :id OR target_id = :id ORDER BY created_at
        """
    ),
    "suspicions": _rows("SELECT worker_id, reason, created_at FROM suspicions WHERE user_id = :id ORDER BY id"),
    "bans": _rows("SELECT reason, created_at, ends_at FROM bans WHERE user_id = :id"),
    "reports_by_the_account": _rows(
        "SELECT id, kind, target, reason, created_at, closed_at FROM reports WHERE reporter_id = :id ORDER BY id"
    ),
    "reports_about_the_account": _rows(
        "SELECT id, kind, created_at, closed_at FROM reports WHERE user_id = :id ORDER BY id"
    ),
}
"""Every table that holds something of an account, with what is its own there."""
