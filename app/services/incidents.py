"""The line that an operator shows on the status page while something is wrong (operations O4)."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.errors import BadRequest
from app.models.incident import LONGEST_INCIDENT


@dataclass(frozen=True, slots=True)
class ShownIncident:
    """The line that is shown, and since when."""

    message: str
    since: datetime


def set_incident(transaction: Transaction, message: str) -> ShownIncident:
    """Show this line in place of whatever is shown.

    Raises BadRequest when it cannot be shown.
    """
    line = " ".join(message.split())
    if not 1 <= len(line) <= LONGEST_INCIDENT or not line.isprintable():
        raise BadRequest(f"text: must have 1 to {LONGEST_INCIDENT} printable characters.", param="text")
    clear_incident(transaction)
    row = transaction.execute(_SHOW, {"message": line}).one()
    return ShownIncident(row.message, row.created_at)


def clear_incident(transaction: Transaction) -> bool:
    """Show no line. False when none was shown."""
    return bool(transaction.execute(_CLEAR).all())


def current_incident(transaction: Transaction) -> ShownIncident | None:
    """Return the line that is shown, if there is one."""
    row = transaction.execute(_CURRENT).one_or_none()
    return None if row is None else ShownIncident(row.message, row.created_at)


_SHOW = text("INSERT INTO incidents (message) VALUES (:message) RETURNING message, created_at")

_CLEAR = text("UPDATE incidents SET ended_at = now() WHERE ended_at IS NULL RETURNING id")

# Two operators at once may leave two lines: the newer one is shown, and one clearing ends both.
_CURRENT = text("SELECT message, created_at FROM incidents WHERE ended_at IS NULL ORDER BY id DESC LIMIT 1")
