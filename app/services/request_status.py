"""Reads a request's status in one round trip; its bodies only once it is done."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.capabilities import Requirements
from app.domain.errors import RequestNotFound
from app.domain.pricing import kudos
from app.domain.request_status import RequestFacts, status_object
from app.domain.states import RequestState
from app.domain.system_accounts import ANONYMOUS_ID
from app.services.accounts import authenticate
from app.services.online import OnlinePool, OnlineWorkers
from app.services.runtime import Runtime

POSITION_LIMIT = 1_000
"""Positions are counted up to here; further back they say no more than this."""

_STATUS = text(
    """
    SELECT r.id, r.user_id, r.key_id, r.is_chat, r.state, r.requirements, r.fault, r.faults, r.quote, r.created_at,
           CASE WHEN r.state = 'queued' THEN (
               SELECT count(*) FROM (
                   SELECT 1 FROM queue_entries q
                   WHERE q.class_id = r.class_id AND q.sort_key < r.sort_key LIMIT :positions
               ) ahead) ELSE 0 END AS ahead,
           (SELECT count(*) FROM generations o
            WHERE o.request_id = r.id AND o.state IN ('leased', 'submitted')) AS processing,
           g.id AS generation_id, g.model, g.charge, g.popped_at, g.worker_id, w.name AS worker_name, y.body
    FROM horde_requests r
    LEFT JOIN generations g ON g.request_id = r.id AND g.state IN ('verified', 'settled')
    LEFT JOIN workers w ON w.id = g.worker_id
    LEFT JOIN replies y ON y.generation_id = g.id
    WHERE r.id = :id
    """
)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose request it is, and with which key it was made, where that matters."""

    user_id: int
    key_id: int | None


@dataclass(frozen=True, slots=True)
class FoundStatus:
    """A status with what decides who may read it."""

    owner: Ownership
    quote: float
    status: dict[str, Any]


def find_status(transaction: Transaction, request_id: UUID, pool: OnlinePool) -> FoundStatus:
    """Return a chat request's status.

    Raises RequestNotFound when there is no such chat request.
    """
    row = transaction.execute(_STATUS, {"id": request_id, "positions": POSITION_LIMIT}).one_or_none()
    if row is None or not row.is_chat:
        raise unknown_request()
    state = RequestState(row.state)
    delivered = row.generation_id is not None
    facts = RequestFacts(
        id=str(row.id),
        state=state,
        waiting=int(state in {RequestState.PREPARING, RequestState.QUEUED}),
        processing=row.processing,
        finished=int(delivered),
        restarted=row.faults,
        queue_position=row.ahead + 1 if state is RequestState.QUEUED else 0,
        fault=row.fault,
        charged=row.charge or 0,
        generations=[_generation(row)] if delivered else [],
    )
    availability = pool.availability(Requirements.from_stored(row.requirements))
    return FoundStatus(
        owner=Ownership(row.user_id, row.key_id),
        quote=kudos(row.quote),
        status=status_object(facts, availability),
    )


def _generation(row: Any) -> dict[str, Any]:
    body = row.body or {}
    return {
        "id": str(row.generation_id),
        "state": "ok",
        "message": {
            "role": "assistant",
            "content": body.get("content"),
            "reasoning_content": body.get("reasoning_content"),
            "tool_calls": body.get("tool_calls") or [],
        },
        "finish_reason": body.get("finish_reason"),
        "usage": body.get("usage"),
        "model": row.model,
        "worker_id": str(row.worker_id),
        "worker_name": row.worker_name,
        "queue_seconds": round((row.popped_at - row.created_at).total_seconds(), 3),
        "kudos": kudos(row.charge),
    }


def unknown_request() -> RequestNotFound:
    """Build the answer for an id that this caller cannot see, in the same words whatever the reason."""
    return RequestNotFound("No request has this id, or it belongs to another account.")


def require_reader(transaction: Transaction, owner: Ownership, api_key: str | None, *, trusted_front: bool) -> None:
    """Let the owner, the front, and for anonymous requests everybody read and cancel (details D18).

    A shared key sees what was asked with it. Raises RequestNotFound for all others.
    """
    if trusted_front or owner.user_id == ANONYMOUS_ID:
        return
    if api_key is None:
        raise unknown_request()
    caller = authenticate(transaction, api_key)
    if caller.user_id != owner.user_id or (caller.key.is_shared and caller.key.id != owner.key_id):
        raise unknown_request()


class ReadStatus:
    """The use case of a status read."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers) -> None:
        self._runtime = runtime
        self._online = online

    def __call__(self, request_id: UUID, *, api_key: str | None, trusted_front: bool) -> dict[str, Any]:
        """Return the status for this caller.

        Raises RequestNotFound when there is none that the caller may read.
        """
        with self._runtime.database.statements() as transaction:
            found = find_status(transaction, request_id, self._online.pool(transaction))
            require_reader(transaction, found.owner, api_key, trusted_front=trusted_front)
        return found.status
