"""Erases what the horde knows of a person, and leaves a stub that the ledger can name (decision 0076)."""

from dataclasses import dataclass

import structlog
from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.errors import BadRequest
from app.models.account import AccountKind
from app.services.accounts import Account
from app.services.runtime import Runtime
from app.services.under_way import Ended, end_all_under_way

STUB = "erased"
"""What stands where a name was."""

PATIENT = text("SET LOCAL statement_timeout = '10min'")
"""For a transaction that walks through everything of an account, however much that is."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure ended, and how many requests still have their texts, as somebody works on them."""

    ended: Ended
    left: int


def erase_account(runtime: Runtime, account: Account) -> Erased:
    """Erase an account's personal data; a second time erases what was still in use the first time.

    First it is shut, so that nothing more comes in; then what it has under way is ended; then everything is
    erased in one transaction. Raises BadRequest for accounts that are the horde's own.
    """
    if account.kind in (AccountKind.SYSTEM, AccountKind.ANONYMOUS):
        raise BadRequest(f"{account.alias} is the horde's own account and nobody's data.")
    values = {"id": account.id, "stub": STUB}
    with runtime.database.transaction() as transaction:
        transaction.execute(_SHUT, values)
    ended = end_all_under_way(runtime, [account.id])
    with runtime.database.transaction() as transaction:
        transaction.execute(PATIENT)
        for statement in _ERASE:
            transaction.execute(statement, values)
        left = _texts_left(transaction, account.id)
    log.warning("account.erased", user_id=account.id)
    return Erased(ended, left)


def _texts_left(transaction: Transaction, user_id: int) -> int:
    return int(transaction.execute(_LEFT, {"id": user_id}).scalar_one())


_SHUT = text(
    """
    WITH revoked AS (
        UPDATE api_keys SET revoked_at = now() WHERE user_id = :id AND revoked_at IS NULL
    )
    UPDATE users SET deleted = true, passkey_sha256 = NULL, previous_passkey_sha256 = NULL WHERE id = :id
    """
)

_PERSON = text(
    """
    UPDATE users SET username = CAST(:stub AS text), kind = 'user', contact = NULL, admin_comment = NULL,
        concurrency = NULL, worker_invited = 0, public_workers = false, trusted = false, moderator = false,
        flagged = false, education = false, customizer = false, vpn = false, special = false,
        erased_at = COALESCE(erased_at, now())
    WHERE id = :id
    """
)

# A gift to a shared key was noted under that key's id, which is the key.
_NAMED_KEYS = text(
    """
    UPDATE kudos_transfers t SET target = CAST(:stub AS text) FROM api_keys k
    WHERE k.user_id = :id AND t.target_id = :id AND t.target = CAST(k.shared_id AS text)
    """
)

_CHOSEN_KEYS = text("UPDATE kudos_transfers SET idempotency_key = NULL WHERE source_id = :id")

# The ledger names keys by their number, so their rows stay.
_KEYS = text(
    """
    UPDATE api_keys SET key_sha256 = CAST(:stub AS text) || ':' || id, name = CAST(:stub AS text), shared_id = NULL,
        max_text_tokens = NULL
    WHERE user_id = :id
    """
)

# Generations name workers, so their rows stay too.
_WORKERS = text(
    """
    UPDATE workers SET name = CAST(:stub AS text), info = NULL, maintenance_message = NULL, address = NULL,
        uptime_from = NULL, deleted_at = COALESCE(deleted_at, now()), last_seen_at = to_timestamp(0),
        declaration = (declaration - CAST(ARRAY['bridge_agent', 'priority_usernames', 'blacklist', 'softprompts']
            AS text[])) || jsonb_build_object('name', CAST(:stub AS text))
    WHERE user_id = :id
    """
)

_MESSAGES = text(
    """
    DELETE FROM worker_messages
    WHERE author_id = :id OR worker_id IN (SELECT w.id FROM workers w WHERE w.user_id = :id)
    """
)

_TEXTS = text(
    """
    WITH due AS (
        SELECT r.id FROM horde_requests r
        WHERE r.user_id = :id AND r.ended_at IS NOT NULL AND r.bodies_erased_at IS NULL
          AND NOT EXISTS (
              SELECT 1 FROM generations g WHERE g.request_id = r.id AND g.state IN ('leased', 'submitted'))
    ), bodies AS (
        DELETE FROM request_bodies b USING due WHERE b.request_id = due.id
    ), answers AS (
        DELETE FROM replies y USING generations g, due WHERE y.generation_id = g.id AND g.request_id = due.id
    )
    UPDATE horde_requests r SET bodies_erased_at = now() FROM due WHERE r.id = due.id
    """
)

# A refusal quotes names of the client's tools and schema.
_REFUSALS = text(
    """
    UPDATE generations g SET refusal = NULL FROM horde_requests r
    WHERE r.user_id = :id AND g.request_id = r.id AND g.refusal IS NOT NULL
    """
)

# A fault may quote the address of an image; words that a worker refuses were found in the text.
_QUOTED = text(
    """
    UPDATE horde_requests
    SET fault = NULL, requirements = jsonb_set(requirements, '{refused_words}', '[]', false)
    WHERE user_id = :id AND ended_at IS NOT NULL
      AND (fault IS NOT NULL OR requirements -> 'refused_words' <> '[]')
    """
)

_LEFT = text("SELECT count(*) FROM horde_requests WHERE user_id = :id AND bodies_erased_at IS NULL")

_ERASE = (
    _PERSON,
    _NAMED_KEYS,
    _CHOSEN_KEYS,
    _KEYS,
    _WORKERS,
    _MESSAGES,
    _TEXTS,
    _REFUSALS,
    _QUOTED,
    text("DELETE FROM suspicions WHERE user_id = :id"),
    text("DELETE FROM operation_keys WHERE user_id = :id"),
    text("DELETE FROM bans WHERE user_id = :id"),
    text("DELETE FROM reports WHERE reporter_id = :id OR user_id = :id"),
)
