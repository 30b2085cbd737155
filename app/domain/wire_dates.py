"""Dates as the wire writes them (wire reference 2.4 and 2.7)."""

from datetime import UTC, datetime
from email.utils import format_datetime


def rfc822(at: datetime | str) -> str:
    """Return a time as an RFC 822 date; PostgreSQL's JSON has it as text."""
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return format_datetime(moment.astimezone(UTC), usegmt=True)
