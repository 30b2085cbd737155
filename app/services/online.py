"""Who is online: one snapshot of the declarations that everything about availability reads (details D11)."""

import time
from dataclasses import dataclass
from threading import Lock

from sqlalchemy import select, text

from app.adapters.database import Transaction
from app.domain.capabilities import Availability, Declaration, Requirements, gaps
from app.models import Worker

FRESH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class OnlinePool:
    """The declarations of all online workers at one moment."""

    declarations: tuple[Declaration, ...]

    def availability(self, requirements: Requirements) -> Availability:
        """Say who could serve these requirements, and what is missing when nobody can."""
        return gaps(self.declarations, requirements)

    @property
    def threads(self) -> int:
        """Jobs that the online workers can run at once."""
        return sum(declaration.threads for declaration in self.declarations)

    def others_serve(self, model: str, name: str) -> bool:
        """Whether a chat worker other than `name` serves this model."""
        return any(other.model_id == model and other.name != name for other in self.declarations)


class OnlineWorkers:
    """This process's snapshot of the pool, taken again when it is older than a second."""

    def __init__(self, online_seconds: int) -> None:
        self._online_seconds = online_seconds
        self._lock = Lock()
        self._pool = OnlinePool(())
        self._taken_at = float("-inf")

    @property
    def last(self) -> OnlinePool:
        """The newest snapshot, without a look at the database."""
        return self._pool

    def pool(self, transaction: Transaction) -> OnlinePool:
        """Return a snapshot that is at most a second old."""
        if time.monotonic() - self._taken_at < FRESH_SECONDS:
            return self._pool
        return self.fresh_pool(transaction)

    def fresh_pool(self, transaction: Transaction) -> OnlinePool:
        """Take a snapshot now: for answers that refuse."""
        rows = transaction.execute(
            select(Worker.declaration)
            .where(
                Worker.last_seen_at > text(f"now() - interval '{self._online_seconds} seconds'"),
                Worker.maintenance.is_(False),
            )
            .order_by(Worker.name)
        ).scalars()
        declarations = tuple(Declaration.from_stored(row) for row in rows)
        with self._lock:
            self._pool = OnlinePool(declarations)
            self._taken_at = time.monotonic()
        return self._pool
