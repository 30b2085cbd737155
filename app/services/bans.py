"""Bans accounts and networks, and ends bans (decision 0074)."""

from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.errors import BadRequest
from app.domain.networks import Network, parse_network
from app.models.account import AccountKind
from app.services.accounts import Account, alias_of
from app.services.banned import IN_FORCE
from app.services.runtime import Runtime
from app.services.under_way import Ended, end_under_way

UNBANNABLE = {
    AccountKind.SYSTEM: "This is the horde's own account.",
    AccountKind.SERVICE: "A service account has no requests of its own. Give it another passkey: horde passkey rotate.",
}

log = structlog.get_logger(__name__)


def ban_account(transaction: Transaction, account: Account, reason: str | None, hours: float | None) -> datetime | None:
    """Ban an account, anew if it was banned before; return until when, None for as long as nobody ends it.

    From now on its keys are refused. What it has under way is for `end_all_under_way`.
    Raises BadRequest for the horde's own accounts and for services.
    """
    refusal = UNBANNABLE.get(AccountKind(account.kind))
    if refusal is not None:
        raise BadRequest(f"{account.alias} cannot be banned. {refusal}")
    values = {"user_id": account.id, "reason": reason, "hours": hours}
    ends_at: datetime | None = transaction.execute(_BAN_ACCOUNT, values).scalar_one()
    log.warning("account.banned", user_id=account.id)
    return ends_at


def ban_network(
    transaction: Transaction, written: str, reason: str | None, hours: float | None
) -> tuple[Network, datetime | None]:
    """Ban an address or a network, anew if it was banned before; return it, and until when.

    Every process follows within two seconds. Raises BadRequest when it cannot be banned.
    """
    network = parse_network(written)
    values = {"network": str(network), "reason": reason, "hours": hours}
    ends_at = transaction.execute(_BAN_NETWORK, values).scalar_one()
    log.warning("network.banned")
    return network, ends_at


def unban_account(transaction: Transaction, user_id: int) -> bool:
    """End an account's ban. False when it had none."""
    return transaction.execute(_UNBAN_ACCOUNT, {"user_id": user_id}).first() is not None


def unban_network(transaction: Transaction, written: str) -> bool:
    """End the ban of exactly this network. False when it had none; raises BadRequest for what is no network."""
    return transaction.execute(_UNBAN_NETWORK, {"network": str(parse_network(written))}).first() is not None


def list_bans(transaction: Transaction) -> list[dict[str, Any]]:
    """Return every ban, the newest first; also those that have ended by themselves."""
    return [_shown(row) for row in transaction.execute(_LIST, {"user_id": None})]


def ban_of(transaction: Transaction, user_id: int) -> dict[str, Any] | None:
    """Return an account's ban as it is listed; None when none is in force."""
    row = transaction.execute(_LIST, {"user_id": user_id}).one_or_none()
    return None if row is None or not row.in_force else _shown(row)


def _shown(row: Row[Any]) -> dict[str, Any]:
    return {
        "banned": str(row.network) if row.user_id is None else alias_of(row.username, row.user_id),
        "kind": "address" if row.user_id is None else "user",
        "in_force": row.in_force,
        "ends_at": row.ends_at,
        "reason": row.reason,
        "created_at": row.created_at,
    }


def end_banned(runtime: Runtime) -> Ended:
    """End one batch of what banned accounts have under way: what slipped in while a ban was set. For the sweep."""
    with runtime.database.statements() as transaction:
        banned = transaction.execute(_BANNED).scalars().all()
    return end_under_way(runtime, banned) if banned else Ended()


_BAN_ACCOUNT = text(
    """
    INSERT INTO bans (user_id, reason, ends_at)
    VALUES (:user_id, CAST(:reason AS text), now() + make_interval(secs => 3600 * CAST(:hours AS float8)))
    ON CONFLICT (user_id) DO UPDATE SET reason = excluded.reason, ends_at = excluded.ends_at, created_at = now()
    RETURNING ends_at
    """
)

_BAN_NETWORK = text(
    """
    INSERT INTO bans (network, reason, ends_at)
    VALUES (CAST(:network AS cidr), CAST(:reason AS text),
            now() + make_interval(secs => 3600 * CAST(:hours AS float8)))
    ON CONFLICT (network) DO UPDATE SET reason = excluded.reason, ends_at = excluded.ends_at, created_at = now()
    RETURNING ends_at
    """
)

_UNBAN_ACCOUNT = text("DELETE FROM bans WHERE user_id = :user_id RETURNING id")

_UNBAN_NETWORK = text("DELETE FROM bans WHERE network = CAST(:network AS cidr) RETURNING id")

_LIST = text(
    f"""
    SELECT b.user_id, b.network, b.reason, b.ends_at, b.created_at, u.username,
           {IN_FORCE.format(ban="b")} AS in_force
    FROM bans b LEFT JOIN users u ON u.id = b.user_id
    WHERE CAST(:user_id AS bigint) IS NULL OR b.user_id = CAST(:user_id AS bigint)
    ORDER BY b.created_at DESC, b.id DESC
    """  # noqa: S608 - joined from constants
)

_BANNED = text(f"SELECT b.user_id FROM bans b WHERE b.user_id IS NOT NULL AND {IN_FORCE.format(ban='b')}")  # noqa: S608
