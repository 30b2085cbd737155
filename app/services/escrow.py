"""Trusts owners who have worked enough, and gives trusted owners what waited for them (wire reference 4.7)."""

from uuid import uuid4

import structlog
from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.earning import earns_trust
from app.domain.pricing import KUDOS
from app.services.accounts import Role, set_role
from app.services.kudos import lock_account
from app.services.runtime import Runtime
from app.services.suspicions import IS_SUSPICIOUS

BATCH = 200

log = structlog.get_logger(__name__)


def review_escrow(runtime: Runtime) -> None:
    """Look at every account with kudos in escrow: trust it if it earned that, release what a trusted one has."""
    threshold = round(runtime.settings.kudos_trust_threshold * KUDOS)
    with runtime.database.statements() as transaction:
        found = transaction.execute(_WAITING, {"threshold": threshold, "limit": BATCH}).all()
    for row in found:
        trusted = row.trusted
        with runtime.database.transaction() as transaction:
            lock_account(transaction, row.user_id)
            if not trusted and earns_trust(
                escrow=escrow_of(transaction, row.user_id),
                age=row.age,
                suspected=row.flagged or row.suspicious,
                threshold=threshold,
            ):
                set_role(transaction, row.user_id, Role.TRUSTED, held=True)
                log.info("account.trusted", user_id=row.user_id)
                trusted = True
            if trusted:
                _release(transaction, row.user_id)


def escrow_of(transaction: Transaction, user_id: int) -> int:
    """Return the millikudos that wait until the account is trusted."""
    return int(transaction.execute(_ESCROW, {"user_id": user_id}).scalar_one())


def _release(transaction: Transaction, user_id: int) -> None:
    """Make an account's escrow its own. The caller holds the account's lock, so nothing is released twice."""
    transaction.execute(_RELEASE, {"user_id": user_id, "key": f"escrow:{uuid4()}"})


_WAITING = text(
    f"""
    SELECT b.user_id, u.trusted, u.flagged, {IS_SUSPICIOUS.format(account="u.id")} AS suspicious,
           now() - u.created_at AS age
    FROM balances b JOIN users u ON u.id = b.user_id
    WHERE b.escrow > 0 AND NOT u.deleted AND (u.trusted OR b.escrow > :threshold)
    ORDER BY u.trusted DESC, b.escrow DESC
    LIMIT :limit
    """  # noqa: S608 - joined from constants
)

_ESCROW_SUM = """
    COALESCE((SELECT escrow FROM balances WHERE user_id = :user_id), 0)
    + COALESCE((SELECT sum(amount) FROM ledger_entries
                WHERE user_id = :user_id AND NOT folded AND pocket = 'escrow'), 0)"""

_ESCROW = text(f"SELECT {_ESCROW_SUM}")

_RELEASE = text(
    f"""
    WITH waiting AS (SELECT {_ESCROW_SUM} AS amount)
    INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount)
    SELECT :key, 'escrow_out', :user_id, 'escrow', -amount FROM waiting WHERE amount > 0
    UNION ALL
    SELECT :key, 'escrow_in', :user_id, 'spendable', amount FROM waiting WHERE amount > 0
    """  # noqa: S608 - joined from constants
)
