"""Cancels a request: it leaves the queue at once; a job that a worker already runs is still paid (details D7, D15)."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row, select, text

from app.adapters.database import Transaction
from app.domain.errors import ServiceUnavailable
from app.domain.progress import PostedText, Relayed
from app.domain.redis_keys import ChatEvent
from app.domain.states import ENDED_REQUESTS, RequestState
from app.models import HordeRequest
from app.services.cancel_generation import cancel_generation, streamed_job
from app.services.faults import LEAVE_QUEUE, end_request
from app.services.request_status import Ownership, Statuses, require_reader, unknown_request
from app.services.runtime import Runtime
from config.fault_points import FaultPoint, reach

TRIES = 5
"""Times that a cancel follows a request from one worker to the next before it gives up."""

log = structlog.get_logger(__name__)


class CancelRequest:
    """The use case of a cancel."""

    def __init__(self, runtime: Runtime, statuses: Statuses) -> None:
        self._runtime = runtime
        self._statuses = statuses

    def __call__(
        self, request_id: UUID, *, api_key: str | None, trusted_front: bool, relayed: Relayed | None = None
    ) -> dict[str, Any]:
        """End the chat request if it is still open, and return the status it reached.

        A generation that is streamed just now is settled on the text posted so far, or, where
        Redis lost that, on what a front says that it relayed. Raises RequestNotFound when there
        is none that the caller may cancel.
        """
        for _ in range(TRIES):
            with self._runtime.database.statements() as transaction:
                found = _found(transaction, request_id, is_chat=True)
                owner = Ownership(found.user_id, found.key_id)
                require_reader(transaction, owner, api_key, trusted_front=trusted_front)
            # Read with no row locked; that the generation is still the same one is seen under the lock.
            said = relayed if trusted_front else None
            posted = _posted(self._runtime, request_id, found.streaming_id, said)
            with self._runtime.database.transaction() as transaction:
                if _end(self._runtime, transaction, request_id, {found.streaming_id: posted}) is not None:
                    return self._statuses.find(transaction, request_id).status
        raise ServiceUnavailable("The request is moving too fast. Cancel it again.", retry_after_seconds=1)

    def unstarted(self, request_ids: Iterable[UUID]) -> list[UUID]:
        """End those of these chat requests that no worker has begun, and return them: for fronts alone.

        Each account's in one statement: no account is locked while another's is waited for.
        """
        cancelled: list[UUID] = []
        with self._runtime.database.statements() as transaction:
            for owned in transaction.execute(_BY_OWNER, {"ids": list(request_ids)}).all():
                ended = transaction.execute(_END_UNSTARTED, {"ids": owned.ids}).scalars().all()
                if ended:
                    transaction.execute(LEAVE_QUEUE, {"ids": ended})
                    cancelled += ended
            transaction.after_commit(lambda: self._runtime.bus.publish_chats(cancelled, ChatEvent.DONE))
        for request_id in cancelled:
            log.info("request.cancelled", request_id=str(request_id))
        return cancelled

    def text(self, request_id: UUID) -> dict[str, Any]:
        """End the text request if it is still open, and return the status it reached.

        Raises RequestNotFound when there is none.
        """
        with self._runtime.database.transaction() as transaction:
            _found(transaction, request_id, is_chat=False)
            _end(self._runtime, transaction, request_id, {})
            return self._statuses.find(transaction, request_id, is_chat=False).status


def cancel_open(runtime: Runtime, request_id: UUID) -> bool:
    """End a request of either kind if it is still open, whoever asks; whether that ended it.

    By the same rules as a requester's own cancel: what is held is released, a streamed generation
    is settled on what was posted, another running job is paid when it comes.
    """
    for _ in range(TRIES):
        with runtime.database.statements() as transaction:
            streaming_id = transaction.execute(_STREAMING, {"id": request_id}).scalar_one_or_none()
        posted = _posted(runtime, request_id, streaming_id, None)
        with runtime.database.transaction() as transaction:
            ended = _end(runtime, transaction, request_id, {streaming_id: posted})
        if ended is not None:
            return ended
    return False


def _posted(runtime: Runtime, request_id: UUID, generation_id: UUID | None, relayed: Relayed | None) -> PostedText:
    """Return what was posted of a streamed generation, which is frozen by it; or what a front says, if that is more."""
    if generation_id is None:
        return PostedText()
    frozen = runtime.leases.freeze(request_id, generation_id)
    if frozen is not None and frozen.is_complete:
        return frozen.text
    kept = PostedText() if frozen is None else frozen.text
    said = relayed.text if relayed is not None and relayed.generation_id == generation_id else PostedText()
    return max(kept, said, key=lambda each: each.characters)


def _end(
    runtime: Runtime, transaction: Transaction, request_id: UUID, posted: Mapping[UUID | None, PostedText]
) -> bool | None:
    """End a request if it is open, and say whether it was; None, with nothing changed, when it streams unread text."""
    row = transaction.execute(
        select(HordeRequest.state, HordeRequest.n).where(HordeRequest.id == request_id).with_for_update()
    ).one()
    if row.state in ENDED_REQUESTS or (row.n == 1 and _has_reply(transaction, request_id)):
        return False
    streamed = streamed_job(transaction, request_id)
    if streamed is not None and streamed.id not in posted:
        return None
    end_request(runtime, transaction, request_id, RequestState.CANCELLED)
    transaction.after_commit(lambda: reach(FaultPoint.CANCEL_STORED))
    log.info("request.cancelled", request_id=str(request_id))
    if streamed is not None:
        cancel_generation(runtime, transaction, streamed, posted[streamed.id])
    return True


def _has_reply(transaction: Transaction, request_id: UUID) -> bool:
    """Whether a reply came in before the cancel: then the submit wins (details D15)."""
    found = transaction.execute(
        text("SELECT 1 FROM generations WHERE request_id = :id AND state IN ('submitted', 'verified')"),
        {"id": request_id},
    ).first()
    return found is not None


def _found(transaction: Transaction, request_id: UUID, *, is_chat: bool) -> Row[Any]:
    """Return whose request it is, and which of its generations is streamed just now."""
    row = transaction.execute(_FIND, {"id": request_id, "is_chat": is_chat}).one_or_none()
    if row is None:
        raise unknown_request()
    return row


_FIND = text(
    """
    SELECT r.user_id, r.key_id, (SELECT g.id FROM generations g WHERE g.request_id = r.id AND g.state = 'leased'
                                   AND g.streamed) AS streaming_id
    FROM horde_requests r WHERE r.id = :id AND r.is_chat = :is_chat
    """
)

_STREAMING = text("SELECT id FROM generations WHERE request_id = :id AND state = 'leased' AND streamed")

_BY_OWNER = text(
    """
    SELECT array_agg(id ORDER BY id) AS ids FROM horde_requests
    WHERE id = ANY(CAST(:ids AS uuid[])) AND is_chat AND state IN ('preparing', 'queued') GROUP BY user_id
    """
)

_END_UNSTARTED = text(
    """
    WITH found AS (
        SELECT id FROM horde_requests
        WHERE id = ANY(CAST(:ids AS uuid[])) AND state IN ('preparing', 'queued') ORDER BY id FOR UPDATE
    )
    UPDATE horde_requests r SET state = 'cancelled', ended_at = now(), waiting = 0
    FROM found WHERE r.id = found.id RETURNING r.id
    """
)
"""A chat request has one slot: one that waits for images or in the queue is at no worker."""
