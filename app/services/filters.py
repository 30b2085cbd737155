"""The moderation filters: written by operators, remembered by each process for a few seconds (native API N6)."""

import time
from dataclasses import dataclass
from threading import Lock
from typing import Any

from sqlalchemy import delete, insert, select

from app.adapters.database import Transaction
from app.domain.errors import BadRequest, FilterNotFound
from app.domain.linear_regex import UnusablePattern
from app.domain.moderation import Filter, FilterKind, Moderation
from app.models import Filter as FilterRow

FRESH_SECONDS = 10.0
"""A new filter is in force in every process after this long."""

LONGEST_DESCRIPTION = 255


class Filters:
    """This process's snapshot of the filters."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._moderation = Moderation()
        self._taken_at = float("-inf")

    def moderation(self, transaction: Transaction) -> Moderation:
        """Return the filters in force, at most ten seconds old."""
        if time.monotonic() - self._taken_at >= FRESH_SECONDS:
            moderation = Moderation(load_filters(transaction))
            with self._lock:
                self._moderation = moderation
                self._taken_at = time.monotonic()
        return self._moderation


@dataclass(frozen=True, slots=True)
class NewFilter:
    """A filter as an operator writes it."""

    kind: FilterKind
    pattern: str
    replacement: str | None = None
    description: str | None = None


def load_filters(transaction: Transaction) -> list[Filter]:
    """Return every filter, oldest first."""
    rows = transaction.execute(
        select(FilterRow.id, FilterRow.kind, FilterRow.pattern, FilterRow.replacement).order_by(FilterRow.id)
    )
    return [Filter(row.id, FilterKind(row.kind), row.pattern, row.replacement or "") for row in rows]


def list_filters(transaction: Transaction) -> list[dict[str, Any]]:
    """Return every filter with all that is known of it, oldest first."""
    rows = transaction.execute(
        select(
            FilterRow.id,
            FilterRow.kind,
            FilterRow.pattern,
            FilterRow.replacement,
            FilterRow.description,
            FilterRow.created_at,
        ).order_by(FilterRow.id)
    )
    return [dict(row) for row in rows.mappings()]


def add_filter(transaction: Transaction, new: NewFilter) -> int:
    """Store a filter and return its id. Raises BadRequest as `check_filter` does."""
    check_filter(new)
    row = transaction.execute(
        insert(FilterRow)
        .values(kind=new.kind.value, pattern=new.pattern, replacement=new.replacement, description=new.description)
        .returning(FilterRow.id)
    )
    return int(row.scalar_one())


def check_filter(new: NewFilter) -> None:
    """Raise BadRequest for a filter that cannot be.

    That is a pattern that cannot be run or would match every text, and a replacement that does
    not belong to its kind.
    """
    _check_pattern(new.pattern)
    if (new.kind is FilterKind.REPLACE) != (new.replacement is not None):
        raise BadRequest("replacement: belongs to a filter of kind replace, and is needed there.", param="replacement")
    if len(new.description or "") > LONGEST_DESCRIPTION:
        raise BadRequest(f"description: may have {LONGEST_DESCRIPTION} characters.", param="description")


def remove_filter(transaction: Transaction, filter_id: int) -> None:
    """Remove a filter.

    Raises FilterNotFound.
    """
    removed = transaction.execute(delete(FilterRow).where(FilterRow.id == filter_id).returning(FilterRow.id))
    if removed.one_or_none() is None:
        raise FilterNotFound(f"No filter has the id {filter_id}. List them to see their ids.")


def _check_pattern(pattern: str) -> None:
    try:
        matches_silence = Filter(0, FilterKind.BLOCK, pattern).regex.found_in("")
    except UnusablePattern as error:
        raise BadRequest(
            f"pattern: {error}. Use RE2 syntax, which has no look-around and no back-references.", param="pattern"
        ) from None
    if matches_silence:
        raise BadRequest("pattern: matches an empty text, and so every text. Make it match something.", param="pattern")
