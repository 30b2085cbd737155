"""Reads a request's status in one round trip; its bodies only once something was delivered."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.capabilities import Availability, Requirements
from app.domain.errors import RequestNotFound
from app.domain.pricing import kudos
from app.domain.queue_figures import Place
from app.domain.request_status import CANCELLED_FAULT, RequestFacts, status_object
from app.domain.states import RequestState
from app.domain.system_accounts import ANONYMOUS_ID
from app.domain.text_reply import TextReply
from app.domain.text_status import text_status_object
from app.services.accounts import authenticate
from app.services.online import OnlineWorkers
from app.services.queue_info import QueueInfo, Waiting
from app.services.runtime import Runtime

LARGEST_BATCH = 200
"""Statuses in one batched read (details D12)."""

_STATUS = text(
    """
    SELECT r.id, r.user_id, r.key_id, r.is_chat, r.state, r.class_id, r.requirements, r.fault, r.faults, r.quote,
           r.created_at, r.n, r.waiting, r.finished, r.sort_key,
           (SELECT count(*) FROM generations o
            WHERE o.request_id = r.id AND o.state IN ('leased', 'submitted')) AS processing,
           d.*
    FROM horde_requests r
    LEFT JOIN LATERAL (
        SELECT g.id AS generation_id, g.slot, g.model, g.charge, g.popped_at, g.fault AS ended_by, g.worker_id,
               w.name AS worker_name, y.body
        FROM generations g
        LEFT JOIN workers w ON w.id = g.worker_id
        LEFT JOIN replies y ON y.generation_id = g.id
        WHERE g.request_id = r.id AND g.state IN ('verified', 'settled')
        OFFSET 0
    ) d ON true
    WHERE r.id = ANY(CAST(:ids AS uuid[]))
    ORDER BY r.id, d.slot
    """
)
"""The OFFSET keeps the deliveries of each request apart: a plan that was made while the horde was young
would otherwise read all deliveries there are, and be kept while they become many."""


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


class Statuses:
    """Shapes statuses from rows, the online workers and the queue's figures: the one place for all reads."""

    def __init__(self, online: OnlineWorkers, queue_info: QueueInfo) -> None:
        self._online = online
        self._queue_info = queue_info

    def find(self, transaction: Transaction, request_id: UUID, *, is_chat: bool = True) -> FoundStatus:
        """Return a request's status.

        Raises RequestNotFound when there is no such request of this kind.
        """
        rows = transaction.execute(_STATUS, {"ids": [request_id]}).all()
        if not rows or rows[0].is_chat != is_chat:
            raise unknown_request()
        owner = Ownership(rows[0].user_id, rows[0].key_id)
        return FoundStatus(owner, kudos(rows[0].quote), self._shaped(transaction, rows))

    def changed(self, transaction: Transaction, seen: Mapping[UUID, str | None]) -> dict[str, dict[str, Any] | None]:
        """Return those chat statuses that changed since their version was seen, each with its new `version`.

        None stands for a request that does not exist. What only estimates, and would cost more than
        all the rest, is worked out for those that changed alone.
        """
        grouped: dict[UUID, list[Row[Any]]] = {each: [] for each in seen}
        for row in transaction.execute(_STATUS, {"ids": list(seen)}):
            grouped[row.id].append(row)
        changed: dict[str, dict[str, Any] | None] = {}
        standings: dict[int, tuple[Requirements, Availability]] = {}
        for request_id, rows in grouped.items():
            if not rows or not rows[0].is_chat:
                changed[str(request_id)] = None
                continue
            known = standings.get(rows[0].class_id)
            if known is None:
                known = standings[rows[0].class_id] = self._standing(transaction, rows[0])
            version = _version(status_object(_facts(rows), known[1], Place()))
            if version != seen[request_id]:
                changed[str(request_id)] = self._shaped(transaction, rows) | {"version": version}
        return changed

    def of_new(
        self, transaction: Transaction, request_id: UUID, waiting: Waiting, state: RequestState = RequestState.QUEUED
    ) -> dict[str, Any]:
        """Return the status of a chat request that was stored just now."""
        facts = RequestFacts(id=str(request_id), state=state, waiting=1, processing=0, finished=0, restarted=0)
        availability, _ = self._online.standing(transaction, waiting.requirements)
        place = self._queue_info.place(transaction, waiting) if state is RequestState.QUEUED else Place()
        return status_object(facts, availability, place)

    def _standing(self, transaction: Transaction, row: Row[Any]) -> tuple[Requirements, Availability]:
        requirements = Requirements.from_stored(row.requirements)
        return requirements, self._online.standing(transaction, requirements)[0]

    def _shaped(self, transaction: Transaction, rows: Sequence[Row[Any]]) -> dict[str, Any]:
        first, facts, place = rows[0], _facts(rows), Place()
        requirements, availability = self._standing(transaction, first)
        if facts.state is RequestState.QUEUED:
            waiting = Waiting(requirements=requirements, sort_key=first.sort_key, created_at=first.created_at)
            place = self._queue_info.place(transaction, waiting)
        return (status_object if first.is_chat else text_status_object)(facts, availability, place)


def _facts(rows: Sequence[Row[Any]]) -> RequestFacts:
    first, delivered = rows[0], [row for row in rows if row.generation_id is not None]
    return RequestFacts(
        id=str(first.id),
        state=RequestState(first.state),
        waiting=first.waiting,
        processing=first.processing,
        finished=first.finished,
        restarted=first.faults,
        fault=first.fault,
        charged=sum(row.charge for row in delivered),
        generations=[(_chat_generation if first.is_chat else _text_generation)(row) for row in delivered],
    )


def _chat_generation(row: Row[Any]) -> dict[str, Any]:
    body = row.body or {}
    return {
        "id": str(row.generation_id),
        "state": "cancelled" if row.ended_by == CANCELLED_FAULT else "ok",
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


def _text_generation(row: Row[Any]) -> dict[str, Any]:
    reply = TextReply(text="") if row.body is None else TextReply.from_stored(row.body)
    return {
        **reply.stored(),
        "id": str(row.generation_id),
        "worker_id": str(row.worker_id),
        "worker_name": row.worker_name,
        "model": row.model,
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

    def __init__(self, runtime: Runtime, statuses: Statuses) -> None:
        self._runtime = runtime
        self._statuses = statuses

    def __call__(self, request_id: UUID, *, api_key: str | None, trusted_front: bool) -> dict[str, Any]:
        """Return the status for this caller.

        Raises RequestNotFound when there is none that the caller may read.
        """
        with self._runtime.database.statements() as transaction:
            found = self._statuses.find(transaction, request_id)
            require_reader(transaction, found.owner, api_key, trusted_front=trusted_front)
        return found.status

    def text(self, request_id: UUID) -> dict[str, Any]:
        """Return a text request's status: its id alone opens it (details D18).

        Raises RequestNotFound.
        """
        with self._runtime.database.statements() as transaction:
            return self._statuses.find(transaction, request_id, is_chat=False).status

    def changed(self, seen: Mapping[UUID, str | None]) -> dict[str, dict[str, Any] | None]:
        """Return those of many statuses that changed since their version was seen, each with its new `version`.

        For fronts alone. None stands for a chat request that does not exist.
        """
        with self._runtime.database.statements() as transaction:
            return self._statuses.changed(transaction, seen)


_ESTIMATES = frozenset({"queue_position", "wait_time", "queue_info_at", "eligible_workers", "eligible_threads"})
"""What changes all the time and decides nothing while a request waits."""


def _version(status: Mapping[str, Any]) -> str:
    deciding = {key: value for key, value in status.items() if key not in _ESTIMATES}
    return f"{zlib.crc32(orjson.dumps(deciding)):08x}"
