"""Requirement classes: interned once, remembered by each process (details D11)."""

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.adapters.database import Transaction
from app.domain.capabilities import Declaration, Requirements, class_of, may_cover
from app.models import RequirementClass


class RequirementClasses:
    """This process's memory of the classes. A class never changes, so nothing here goes stale."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._classes: dict[int, Requirements] = {}

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

    def get(self, transaction: Transaction, class_id: int) -> Requirements:
        """Return the requirements of a class."""
        self._learn(transaction, [class_id])
        return self._classes[class_id]

    def covered_by(self, transaction: Transaction, declaration: Declaration, class_ids: list[int]) -> list[int]:
        """Return those of `class_ids` of which this worker may serve a request."""
        self._learn(transaction, class_ids)
        return [class_id for class_id in class_ids if may_cover(declaration, self._classes[class_id])]

    def _learn(self, transaction: Transaction, class_ids: list[int]) -> None:
        unknown = [class_id for class_id in class_ids if class_id not in self._classes]
        if not unknown:
            return
        rows = transaction.execute(
            select(RequirementClass.id, RequirementClass.digest, RequirementClass.requirements).where(
                RequirementClass.id.in_(unknown)
            )
        )
        for row in rows:
            self._classes[row.id] = Requirements.from_stored(row.requirements)
            self._ids[row.digest] = row.id
