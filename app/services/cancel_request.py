"""Cancels a request: it leaves the queue at once; a job that a worker already runs is still paid (details D7, D15)."""

from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import select, text

from app.adapters.database import Transaction
from app.domain.states import ENDED_REQUESTS, RequestState
from app.models import HordeRequest
from app.services.faults import end_request
from app.services.request_status import Ownership, Statuses, require_reader, unknown_request
from app.services.runtime import Runtime
from config.fault_points import FaultPoint, reach

log = structlog.get_logger()


class CancelRequest:
    """The use case of a cancel."""

    def __init__(self, runtime: Runtime, statuses: Statuses) -> None:
        self._runtime = runtime
        self._statuses = statuses

    def __call__(self, request_id: UUID, *, api_key: str | None, trusted_front: bool) -> dict[str, Any]:
        """End the chat request if it is still open, and return the status it reached.

        Raises RequestNotFound when there is none that the caller may cancel.
        """
        with self._runtime.database.transaction() as transaction:
            owner = _owner(transaction, request_id, is_chat=True)
            require_reader(transaction, owner, api_key, trusted_front=trusted_front)
            self._end(transaction, request_id)
            return self._statuses.find(transaction, request_id).status

    def text(self, request_id: UUID) -> dict[str, Any]:
        """End the text request if it is still open, and return the status it reached.

        Raises RequestNotFound when there is none.
        """
        with self._runtime.database.transaction() as transaction:
            _owner(transaction, request_id, is_chat=False)
            self._end(transaction, request_id)
            return self._statuses.find(transaction, request_id, is_chat=False).status

    def _end(self, transaction: Transaction, request_id: UUID) -> None:
        row = transaction.execute(
            select(HordeRequest.state, HordeRequest.n).where(HordeRequest.id == request_id).with_for_update()
        ).one()
        if row.state in ENDED_REQUESTS or (row.n == 1 and self._has_reply(transaction, request_id)):
            return
        end_request(self._runtime, transaction, request_id, RequestState.CANCELLED)
        transaction.after_commit(lambda: reach(FaultPoint.CANCEL_STORED))
        log.info("request.cancelled", request_id=str(request_id))

    @staticmethod
    def _has_reply(transaction: Transaction, request_id: UUID) -> bool:
        """Whether a reply came in before the cancel: then the submit wins (details D15)."""
        found = transaction.execute(
            text("SELECT 1 FROM generations WHERE request_id = :id AND state IN ('submitted', 'verified')"),
            {"id": request_id},
        ).first()
        return found is not None


def _owner(transaction: Transaction, request_id: UUID, *, is_chat: bool) -> Ownership:
    row = transaction.execute(
        select(HordeRequest.user_id, HordeRequest.key_id).where(
            HordeRequest.id == request_id, HordeRequest.is_chat.is_(is_chat)
        )
    ).one_or_none()
    if row is None:
        raise unknown_request()
    return Ownership(row.user_id, row.key_id)
