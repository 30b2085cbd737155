"""The moderation filters as moderators read and write them over HTTP (wire reference 2.8).

The wire numbers kinds: 10 blocks, 11 replaces.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.errors import FilterNotFound, NoFilterModSelected
from app.domain.moderation import FilterKind, Moderation
from app.services.filters import NewFilter, add_filter, check_filter, list_filters, load_filters, remove_filter
from app.services.moderators import require_moderator
from app.services.runtime import Runtime

TYPES = {FilterKind.BLOCK: 10, FilterKind.REPLACE: 11}
KINDS = {number: kind for kind, number in TYPES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterEdit:
    """What a moderator wants changed about a filter; None leaves a thing as it is."""

    regex: str | None = None
    filter_type: int | None = None
    replacement: str | None = None
    description: str | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether there is nothing to change."""
        return (self.regex, self.filter_type, self.replacement, self.description) == (None, None, None, None)


class FilterRoutes:
    """The use cases of `/filters`, all for moderators."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database

    def read_all(self, api_key: str, filter_type: int | None = None) -> list[dict[str, Any]]:
        """Return the filters, oldest first; of one type if one is given. Raises InvalidApiKey or NotModerator."""
        with self._database.statements() as transaction:
            require_moderator(transaction, api_key)
            shown = [_shown(row) for row in list_filters(transaction)]
        return [each for each in shown if filter_type in {None, each["filter_type"]}]

    def patterns(self, api_key: str, filter_type: int | None = None) -> list[dict[str, Any]]:
        """Return one pattern a type, which matches what any filter of the type matches."""
        by_type: dict[int, list[str]] = {}
        for each in self.read_all(api_key, filter_type):
            by_type.setdefault(each["filter_type"], []).append(f"(?:{each['regex']})")
        return [{"filter_type": number, "regex": "|".join(found)} for number, found in sorted(by_type.items())]

    def read(self, api_key: str, filter_id: int) -> dict[str, Any]:
        """Return a filter. Raises InvalidApiKey, NotModerator or FilterNotFound."""
        with self._database.statements() as transaction:
            require_moderator(transaction, api_key)
            return _shown(_find(transaction, filter_id))

    def add(self, api_key: str, new: NewFilter) -> dict[str, Any]:
        """Store a filter and return it. Raises InvalidApiKey, NotModerator or BadRequest."""
        with self._database.transaction() as transaction:
            require_moderator(transaction, api_key)
            return _shown(_find(transaction, add_filter(transaction, new)))

    def check(self, api_key: str, prompt: str) -> dict[str, Any]:
        """Return which filters a text matches, and how many would refuse it."""
        with self._database.statements() as transaction:
            require_moderator(transaction, api_key)
            matching = Moderation(load_filters(transaction)).matching(prompt)
        return {
            "suspicion": sum(each.kind is FilterKind.BLOCK for each in matching),
            "matches": [each.pattern for each in matching],
        }

    def edit(self, api_key: str, filter_id: int, wanted: FilterEdit) -> dict[str, Any]:
        """Change a filter and return it.

        Raises InvalidApiKey, NotModerator, FilterNotFound, NoFilterModSelected or BadRequest.
        """
        with self._database.transaction() as transaction:
            require_moderator(transaction, api_key)
            known = _find(transaction, filter_id)
            if wanted.changes_nothing:
                raise NoFilterModSelected("Name what to change: regex, filter_type, replacement or description.")
            changed = _merged(known, wanted)
            check_filter(changed)
            transaction.execute(
                _CHANGE,
                {
                    "id": filter_id,
                    "kind": changed.kind.value,
                    "pattern": changed.pattern,
                    "replacement": changed.replacement,
                    "description": changed.description,
                },
            )
            return _shown(_find(transaction, filter_id))

    def delete(self, api_key: str, filter_id: int) -> None:
        """Remove a filter. Raises InvalidApiKey, NotModerator or FilterNotFound."""
        with self._database.transaction() as transaction:
            require_moderator(transaction, api_key)
            remove_filter(transaction, filter_id)


def _find(transaction: Transaction, filter_id: int) -> dict[str, Any]:
    for row in list_filters(transaction):
        if row["id"] == filter_id:
            return row
    raise FilterNotFound(f"No filter has the id {filter_id}. List them to see their ids.")


def _merged(known: dict[str, Any], wanted: FilterEdit) -> NewFilter:
    """Return the filter as it will be; one that no longer replaces loses its replacement."""
    kind = FilterKind(known["kind"]) if wanted.filter_type is None else KINDS[wanted.filter_type]
    replacement = known["replacement"] if wanted.replacement is None else wanted.replacement
    if kind is FilterKind.BLOCK and wanted.replacement is None:
        replacement = None
    return NewFilter(
        kind=kind,
        pattern=known["pattern"] if wanted.regex is None else wanted.regex,
        replacement=replacement,
        description=known["description"] if wanted.description is None else wanted.description,
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    kind = FilterKind(row["kind"])
    return {
        "id": row["id"],
        "regex": row["pattern"],
        "filter_type": TYPES[kind],
        "kind": kind.value,
        "replacement": row["replacement"],
        "description": row["description"],
    }


_CHANGE = text(
    """
    UPDATE filters SET kind = :kind, pattern = :pattern, replacement = CAST(:replacement AS text),
        description = CAST(:description AS text)
    WHERE id = :id
    """
)
