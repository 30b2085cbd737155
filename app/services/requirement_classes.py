"""Requirement classes: interned once, remembered by each process (details D11)."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.adapters.database import Transaction
from app.domain.capabilities import Requirements, class_of
from app.domain.selection import Candidate, obstacle
from app.models import RequirementClass

_REMEMBERED_WORKERS = 2_000
"""Workers whose obstacles a process remembers; the longest unseen goes first."""


class RequirementClasses:
    """This process's memory of the classes. A class never changes, so nothing here goes stale."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._classes: dict[int, Requirements] = {}
        self._obstacles: dict[str, tuple[Candidate, dict[int, str | None]]] = {}

    def intern(self, transaction: Transaction, requirements: Requirements) -> int:
        """Return the id of these requirements' class, creating it on first sight."""
        klass = class_of(requirements)
        digest = klass.digest()
        known = self._ids.get(digest)
        if known is not None:
            return known
        found = self._find(transaction, digest)
        if found is not None:
            # Seen committed: safe to remember, whatever becomes of this transaction.
            self._ids[digest] = found
            return found
        transaction.execute(
            insert(RequirementClass)
            .values(digest=digest, requirements=klass.stored())
            .on_conflict_do_nothing(index_elements=["digest"])
        )
        return int(
            transaction.execute(select(RequirementClass.id).where(RequirementClass.digest == digest)).scalar_one()
        )

    @staticmethod
    def _find(transaction: Transaction, digest: str) -> int | None:
        return transaction.execute(
            select(RequirementClass.id).where(RequirementClass.digest == digest)
        ).scalar_one_or_none()

    def of(self, transaction: Transaction, class_ids: Iterable[int]) -> dict[int, Requirements]:
        """Return the requirements of the classes that there are.

        Figures in Redis may name others: they can be of before a database was restored.
        """
        return {class_id: self._classes[class_id] for class_id in self._known(transaction, class_ids)}

    def obstacles(
        self, transaction: Transaction, candidate: Candidate, class_ids: Iterable[int]
    ) -> dict[int, str | None]:
        """Return for each class why this worker gets none of its requests; None where it does."""
        wanted = self._known(transaction, class_ids)
        known = self._known_obstacles(candidate)
        for class_id in wanted:
            if class_id not in known:
                known[class_id] = obstacle(candidate, self._classes[class_id])
        return {class_id: known[class_id] for class_id in wanted}

    def _known_obstacles(self, candidate: Candidate) -> dict[int, str | None]:
        """Return what was found out for this very worker before: as long as it declares the same."""
        kept = self._obstacles.pop(candidate.id, None)
        if kept is None or kept[0] != candidate:
            kept = (candidate, {})
        while len(self._obstacles) >= _REMEMBERED_WORKERS:
            self._obstacles.pop(next(iter(self._obstacles)), None)
        self._obstacles[candidate.id] = kept
        return kept[1]

    def _known(self, transaction: Transaction, class_ids: Iterable[int]) -> list[int]:
        """Learn what these classes require; return those that there are."""
        wanted = list(class_ids)
        unknown = [class_id for class_id in wanted if class_id not in self._classes]
        if unknown:
            self._learn(transaction, unknown)
        return [class_id for class_id in wanted if class_id in self._classes]

    def _learn(self, transaction: Transaction, unknown: list[int]) -> None:
        rows = transaction.execute(
            select(RequirementClass.id, RequirementClass.digest, RequirementClass.requirements).where(
                RequirementClass.id.in_(unknown)
            )
        )
        for row in rows:
            self._classes[row.id] = Requirements.from_stored(row.requirements)
            self._ids[row.digest] = row.id
