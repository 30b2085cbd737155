"""What a key may do right now, for clients that plan their requests."""

from typing import Any

from sqlalchemy import text

from app.domain.admission_rules import Concurrency
from app.domain.pricing import kudos
from app.domain.wire_dates import rfc822
from app.services.accounts import CallersKey, alias_of, authenticate
from app.services.runtime import Runtime


class KeyLimits:
    """The use case of `GET /limits`."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database
        settings = runtime.settings
        self._concurrency = Concurrency(
            settings.anonymous_concurrency, settings.user_concurrency, settings.education_concurrency
        )
        self._default_max_tokens = settings.default_max_tokens

    def __call__(self, api_key: str) -> dict[str, Any]:
        """Return the standing of a key and of its account, as of now.

        What waits of the anonymous account counts by model, so of all of it there is no figure. Raises InvalidApiKey.
        """
        with self._database.statements() as transaction:
            caller = authenticate(transaction, api_key)
            row = transaction.execute(_STANDING, {"user_id": caller.user_id, "counts": not caller.is_anonymous}).one()
        most = self._concurrency.limit(
            is_anonymous=caller.is_anonymous, education=caller.education, own=caller.concurrency
        )
        return {
            "username": alias_of(caller.username, caller.user_id),
            "kudos": kudos(caller.balance),
            "reserved": kudos(int(row.reserved)),
            "concurrency": {"in_use": row.waiting, "max": most},
            "key": _terms(caller.key),
            "default_max_tokens": caller.key.at_most(self._default_max_tokens),
        }


def _terms(key: CallersKey) -> dict[str, Any]:
    limit = key.kudos_limit
    return {
        "name": key.name,
        "shared": key.is_shared,
        "kudos_limit": None if limit is None else kudos(limit),
        "kudos_left": None if limit is None else kudos(max(0, limit - key.spent)),
        "expiry": None if key.expires_at is None else rfc822(key.expires_at),
        "max_tokens": key.max_text_tokens,
    }


_STANDING = text(
    """
    SELECT COALESCE((SELECT b.held FROM balances b WHERE b.user_id = :user_id), 0)
           + COALESCE((SELECT sum(e.amount) FROM ledger_entries e
                       WHERE e.user_id = :user_id AND NOT e.folded AND e.pocket = 'held'), 0) AS reserved,
           CASE WHEN CAST(:counts AS boolean) THEN COALESCE((
               SELECT sum(r.waiting) FROM horde_requests r
               WHERE r.user_id = :user_id AND r.state IN ('preparing', 'queued')), 0) END AS waiting
    """
)
