"""What a request must meet before it is stored: concurrency, upfront kudos, the key's limit (details D1).

The numbers come from `app.domain.admission_rules`. They are compared inside the statement
that stores the request, under the account's lock, so that two submits at once cannot both
use the last place or the same kudos.
"""

from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.admission_rules import (
    Concurrency,
    free_cap,
    free_cap_depends_on_queue,
    priority,
    queue_that_matters,
    upfront_hold,
    upfront_needed,
)
from app.domain.errors import (
    BadRequest,
    KudosUpfront,
    SharedKeyEmpty,
    SharedKeyInsufficientKudos,
    TooManyPrompts,
)
from app.domain.model_sizes import billions
from app.domain.pricing import kudos
from app.services.accounts import Caller
from config.settings import Settings

WAITING_RETRY_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the rules look at of a request, which is for `n` generations."""

    models: tuple[str, ...]
    max_length: int
    quote: int
    slow_workers: bool
    n: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms a request for `n` generations is stored."""

    n: int
    waiting_limit: int
    hold: int
    quote: int
    free_cap: int
    key_limit: int | None
    priority: int

    def values(self, caller: Caller, models: tuple[str, ...]) -> dict[str, Any]:
        """Return the values of `STANDING` and `ADMITTED`."""
        return {
            "metered_key": caller.key.metered_id,
            "n": self.n,
            "quote": self.quote,
            "waiting_limit": self.waiting_limit,
            "hold": self.hold,
            "key_limit": self.key_limit,
            "priority": self.priority,
            "models": Jsonb(list(models)),
        }


def terms_of(
    transaction: Transaction, settings: Settings, caller: Caller, asked: Asked, *, threads: int, downgraded: bool
) -> Terms:
    """Work out on what terms this caller may have this request."""
    limits = Concurrency(settings.anonymous_concurrency, settings.user_concurrency, settings.education_concurrency)
    cap = _cap(transaction, asked.max_length, threads)
    needed = upfront_needed(max_length=asked.max_length, cap=cap, slow_workers=asked.slow_workers)
    sizes = [billions(model) for model in asked.models]
    return Terms(
        n=asked.n,
        waiting_limit=limits.limit(
            is_anonymous=caller.is_anonymous, education=caller.education, own=caller.concurrency
        ),
        hold=asked.n * upfront_hold(asked.max_length, sizes) if needed else 0,
        quote=asked.quote,
        free_cap=cap,
        key_limit=caller.key.kudos_limit,
        priority=priority(caller.balance, downgraded=downgraded or caller.is_anonymous, flagged=caller.flagged),
    )


def _cap(transaction: Transaction, max_length: int, threads: int) -> int:
    """Return the free cap; the queue is only counted where it decides, and only as far as it matters."""
    if not free_cap_depends_on_queue(max_length):
        return free_cap(threads, 0)
    queued = transaction.execute(_QUEUED, {"most": queue_that_matters(threads)}).scalar_one()
    return free_cap(threads, int(queued))


def check_key(caller: Caller, max_length: int, *, param: str) -> None:
    """Check what a key alone decides; `param` is what the wire calls this length.

    Raises SharedKeyEmpty, or BadRequest when it is not good for so many tokens.
    """
    if caller.key.is_empty:
        raise SharedKeyEmpty("Everything that this key may spend is spent. Use another key, or raise its limit.")
    most = caller.key.max_text_tokens
    if most is not None and max_length > most:
        raise BadRequest(f"{param}: this shared key is good for at most {most} tokens.", param=param)


def refuse(standing: Row[Any], terms: Terms) -> None:
    """Raise the refusal that a standing comes to: TooManyPrompts, KudosUpfront or SharedKeyInsufficientKudos.

    Returns when the standing refuses nothing.
    """
    if standing.waiting + terms.n > terms.waiting_limit:
        raise TooManyPrompts(
            f"{standing.waiting} generations of this account wait already, and at most {terms.waiting_limit} may. "
            "Try again when some are done.",
            metadata={"limit": terms.waiting_limit},
            retry_after_seconds=WAITING_RETRY_SECONDS,
        )
    if terms.hold and standing.spendable < terms.hold:
        raise KudosUpfront(
            f"This request needs {kudos(terms.hold)} kudos held until it ends, and the account has "
            f"{kudos(standing.spendable)}. Ask for at most {terms.free_cap} tokens with slow workers allowed, "
            "set horde.allow_downgrade, or earn kudos with a worker.",
            metadata={"hold": kudos(terms.hold), "kudos": kudos(standing.spendable), "free_cap": terms.free_cap},
        )
    if terms.key_limit is not None and standing.committed + terms.quote > terms.key_limit:
        left = max(0, terms.key_limit - standing.committed)
        raise SharedKeyInsufficientKudos(
            f"This request may cost {kudos(terms.quote)} kudos, and {kudos(left)} are left on this key.",
            metadata={"quote": kudos(terms.quote), "left": kudos(left)},
        )


STANDING = "SELECT * FROM locked_standing(:user_id, CAST(:metered_key AS bigint))"
"""An account's standing, under its lock until the statement is committed."""

# Many strangers share the anonymous account: a lock would make them wait for each other, and
# a place more or less of five hundred hurts nobody.
ANONYMOUS_STANDING = """
    SELECT (SELECT COALESCE(sum(w.waiting), 0) FROM (
                SELECT r.waiting FROM horde_requests r
                WHERE r.user_id = :user_id AND r.state IN ('preparing', 'queued')
                  AND r.class_id IN (SELECT c.id FROM requirement_classes c WHERE c.requirements -> 'models' = :models)
                LIMIT :waiting_limit) w) AS waiting,
           CAST(0 AS bigint) AS spendable,
           CAST(0 AS bigint) AS committed
"""
"""The same for the anonymous account, whose requests count by the models they ask for."""

ADMITTED = """
    waiting + :n <= :waiting_limit
    AND (CAST(:hold AS bigint) = 0 OR spendable >= :hold)
    AND (CAST(:key_limit AS bigint) IS NULL OR committed + :quote <= CAST(:key_limit AS bigint))
"""
"""What `refuse` checks, as the condition under which the statement stores anything."""

HOLD = """
    INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount)
    SELECT 'upfront:' || made.id, h.kind, :user_id, h.pocket, h.amount
    FROM made CROSS JOIN (VALUES ('hold', 'spendable', -CAST(:hold AS bigint)), ('held', 'held', CAST(:hold AS bigint)))
        AS h (kind, pocket, amount)
    WHERE CAST(:hold AS bigint) > 0
"""
"""Holds upfront kudos for the request that the statement made; its end releases them, by a trigger."""

_QUEUED = text("SELECT count(*) FROM (SELECT 1 FROM queue_entries LIMIT :most) q")
