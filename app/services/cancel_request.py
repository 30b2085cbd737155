"""Cancels a request: it leaves the queue at once; a job that a worker already runs is still paid (details D7, D15)."""

from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import delete, select, text

from app.adapters.database import Transaction
from app.domain.redis_keys import ChatEvent
from app.domain.states import ENDED_REQUESTS, RequestState
from app.models import HordeRequest, QueueEntry
from app.services.online import OnlineWorkers
from app.services.request_status import Ownership, find_status, require_reader, unknown_request
from app.services.runtime import Runtime
from app.services.transitions import move_request
from config.fault_points import FaultPoint, reach

log = structlog.get_logger()


class CancelRequest:
    """The use case of a cancel."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers) -> None:
        self._runtime = runtime
        self._online = online

    def __call__(self, request_id: UUID, *, api_key: str | None, trusted_front: bool) -> dict[str, Any]:
        """End the request if it is still open, and return the status it reached.

        Raises RequestNotFound when there is none that the caller may cancel.
        """
        with self._runtime.database.transaction() as transaction:
            row = transaction.execute(
                select(HordeRequest.user_id, HordeRequest.key_id).where(
                    HordeRequest.id == request_id, HordeRequest.is_chat
                )
            ).one_or_none()
            if row is None:
                raise unknown_request()
            require_reader(transaction, Ownership(row.user_id, row.key_id), api_key, trusted_front=trusted_front)
            if self._end(transaction, request_id):
                transaction.after_commit(lambda: reach(FaultPoint.CANCEL_STORED))
                transaction.after_commit(lambda: self._runtime.bus.publish_chat(request_id, ChatEvent.DONE))
                log.info("request.cancelled", request_id=str(request_id))
            found = find_status(transaction, request_id, self._online.pool(transaction))
        return found.status

    def _end(self, transaction: Transaction, request_id: UUID) -> bool:
        # The order of locks is the claim's: the queue entry, then the request.
        transaction.execute(delete(QueueEntry).where(QueueEntry.request_id == request_id))
        state = transaction.execute(
            select(HordeRequest.state).where(HordeRequest.id == request_id).with_for_update()
        ).scalar_one()
        if state in ENDED_REQUESTS or self._has_reply(transaction, request_id):
            return False
        return move_request(transaction, request_id, RequestState.CANCELLED, ended_at=text("now()"))

    @staticmethod
    def _has_reply(transaction: Transaction, request_id: UUID) -> bool:
        """Whether a reply came in before the cancel: then the submit wins (details D15)."""
        found = transaction.execute(
            text("SELECT 1 FROM generations WHERE request_id = :id AND state IN ('submitted', 'verified')"),
            {"id": request_id},
        ).first()
        return found is not None
