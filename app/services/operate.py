"""What an operator reads and changes without a key: the workers, and the queue by who waits for what (O3)."""

from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, text

from app.adapters.database import Transaction
from app.domain.capabilities import Requirements
from app.domain.declaration import Declaration
from app.domain.worker_profile import WorkerEdit
from app.services.accounts import alias_of
from app.services.online import OnlineWorkers
from app.services.requirement_classes import RequirementClasses
from app.services.workers import change_worker, unknown_worker


def list_workers(transaction: Transaction, *, online_seconds: int, everyone: bool = False) -> list[dict[str, Any]]:
    """Return the workers that are online, or every one, by name."""
    rows = transaction.execute(_WORKERS, {"online": online_seconds, "everyone": everyone}).mappings()
    return [_worker(row) for row in rows]


def change_worker_named(transaction: Transaction, name_or_id: str, wanted: WorkerEdit) -> dict[str, Any]:
    """Change a worker by its name or id; return how it stands then. Raises WorkerNotFound."""
    found = transaction.execute(_FIND, {"given": name_or_id}).scalar_one_or_none()
    if found is None:
        raise unknown_worker()
    worker_id = UUID(str(found))
    change_worker(transaction, worker_id, wanted)
    return dict(transaction.execute(_STANDING, {"id": worker_id}).mappings().one())


def read_queue(transaction: Transaction, *, online_seconds: int) -> list[dict[str, Any]]:
    """Return what waits by requirement class, longest first, with who could take it."""
    rows = transaction.execute(_QUEUE).all()
    classes = RequirementClasses().of(transaction, [row.class_id for row in rows])
    pool = OnlineWorkers(online_seconds).pool(transaction)
    queue = []
    for row in rows:
        requirements = classes[row.class_id]
        available = pool.availability(requirements)
        queue.append(
            {
                "models": ", ".join(requirements.models) or "any",
                "kind": "chat" if requirements.is_chat else "text",
                "waiting": row.waiting,
                "tokens": row.tokens,
                "oldest_seconds": row.oldest_seconds,
                "workers": available.eligible_workers,
                "threads": available.eligible_threads,
                "needs": _needs(requirements),
            }
        )
    return queue


def _needs(requirements: Requirements) -> str:
    return ", ".join(sorted(requirements.features))


def _worker(row: RowMapping) -> dict[str, Any]:
    declaration = Declaration.from_stored(row["declaration"])
    return {
        "name": row["name"],
        "id": str(row["id"]),
        "owner": alias_of(row["username"], row["user_id"]),
        "models": ", ".join(declaration.served),
        "threads": declaration.threads,
        "seen_seconds": row["seen_seconds"],
        "maintenance": row["maintenance"],
        "paused": row["paused"],
        "aborts": row["aborts"],
        "jobs": row["jobs"],
    }


_WORKERS = text(
    """
    SELECT w.id, w.name, w.user_id, u.username, w.declaration, w.maintenance, w.paused, w.aborts,
           extract(epoch FROM now() - w.last_seen_at)::int AS seen_seconds,
           (SELECT count(*) FROM generations g WHERE g.worker_id = w.id AND g.state = 'leased') AS jobs
    FROM workers w JOIN users u ON u.id = w.user_id
    WHERE w.deleted_at IS NULL
        AND (CAST(:everyone AS boolean) OR w.last_seen_at > now() - make_interval(secs => :online))
    ORDER BY w.name
    """
)

_FIND = text(
    "SELECT id FROM workers WHERE deleted_at IS NULL AND (name = :given OR CAST(id AS text) = lower(:given)) FOR UPDATE"
)

_STANDING = text("SELECT name, maintenance, maintenance_message, paused FROM workers WHERE id = :id")

_QUEUE = text(
    """
    SELECT q.class_id, count(*) AS waiting, sum(q.max_length)::bigint AS tokens,
           extract(epoch FROM now() - min(r.created_at))::int AS oldest_seconds
    FROM queue_entries q JOIN horde_requests r ON r.id = q.request_id
    GROUP BY q.class_id
    ORDER BY waiting DESC, q.class_id
    """
)
