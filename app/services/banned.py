"""What the statements that identify a caller look up about bans, and the refusal that follows."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from app.domain.errors import UserBanned

IN_FORCE = "({ban}.ends_at IS NULL OR {ban}.ends_at > now())"
"""SQL for whether a ban is in force."""

BAN_OF = f"LEFT JOIN bans ban ON ban.user_id = {{account}} AND {IN_FORCE.format(ban='ban')}"
"""SQL that joins an account's ban, if it has one; selected as `BAN_COLUMNS`."""

BAN_COLUMNS = "ban.id IS NOT NULL AS banned, ban.reason AS ban_reason, ban.ends_at AS ban_ends_at"


def refuse_banned(row: Row[Any]) -> None:
    """Raise UserBanned for the row of a banned account."""
    if not row.banned:
        return
    raise UserBanned(
        f"This account is banned{terms(row.ban_reason, row.ban_ends_at)}. Ask the operator of this horde if that is"
        " a mistake.",
        metadata=None if row.ban_ends_at is None else {"ends_at": row.ban_ends_at.astimezone(UTC).isoformat()},
    )


def terms(reason: str | None, ends_at: datetime | None) -> str:
    """Until when a ban lasts and why it was spoken, in words that follow "is banned"."""
    until = "" if ends_at is None else f" until {ends_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    because = f": {reason.rstrip('.')}" if reason else ""
    return until + because
