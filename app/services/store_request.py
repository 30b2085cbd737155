"""Stores a request with its bodies, hold and queue entries if it is admitted, and wakes a worker (D1, D11).

Chat and text alike, in one statement. It always answers with one row: the account's standing,
and the id of what it stored. No id means that the standing did not admit the request, or that
its operation key was taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import text

from app.adapters.database import Transaction
from app.domain.capabilities import Requirements
from app.domain.lifetimes import job_ttl_seconds
from app.domain.redis_keys import QueueSignal
from app.domain.states import RequestState
from app.domain.task_names import TaskName
from app.services.accounts import Caller
from app.services.admission import ADMITTED, ANONYMOUS_STANDING, HOLD, STANDING, Terms, refuse
from app.services.preparing import next_task
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime
from app.services.stage_images import NewMedia
from config.fault_points import FaultPoint, reach

AGEING_MILLIKUDOS_PER_SECOND = 5_000
"""Waiting this long outweighs this much: 50 kudos in 10 seconds, the wire reference's §4.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An operation key to claim with the request, and what it stands for."""

    key: str
    scope: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request that passed every check but its account's standing.

    `prompt` is what its workers get, `submitted_prompt` the same before it was shortened.
    """

    id: UUID
    caller: Caller
    terms: Terms
    requirements: Requirements
    context_tokens: int
    conformance: str
    ttl_seconds: int
    contract: Mapping[str, Any]
    prompt: str
    submitted_prompt: str
    operation: Claim | None = None
    streams: bool = False
    media: NewMedia | None = None

    @property
    def state(self) -> RequestState:
        """Where the request begins: images come before the queue (images I1)."""
        return RequestState.PREPARING if self.media is not None and self.media.sources else RequestState.QUEUED


@dataclass(frozen=True, slots=True)
class Stored:
    """Where the request was put in the queue."""

    sort_key: float
    created_at: datetime


def store_request(
    runtime: Runtime, transaction: Transaction, classes: RequirementClasses, new: NewRequest
) -> Stored | None:
    """Store a request and ring for it; None, with nothing stored, when its operation key was claimed before.

    To be called among `statements`, not inside a transaction.
    Raises TooManyPrompts, KudosUpfront or SharedKeyInsufficientKudos, with nothing stored.
    """
    class_id = classes.intern(transaction, new.requirements)
    statement = STORE_ANONYMOUS if new.caller.is_anonymous else STORE
    row = transaction.execute(statement, _values(runtime, class_id, new)).one()
    if row.request_id is None:
        refuse(row, new.terms)
        return None
    signal = QueueSignal(class_id=class_id, requirements=new.requirements.stored())
    transaction.after_commit(lambda: reach(FaultPoint.REQUEST_STORED))
    if new.terms.hold:
        transaction.after_commit(lambda: reach(FaultPoint.RESERVATION_STORED))
    if new.state is RequestState.QUEUED:
        transaction.after_commit(lambda: runtime.bus.publish_queue(signal))
    if new.media is not None:
        task = next_task(new.media.sources) if new.media.sources else TaskName.OFFLOAD_MESSAGES
        transaction.after_commit(lambda: _send(runtime, task, new.id))
    # A held pop sets out while the answer to this submit is still being made.
    transaction.release_effects()
    return Stored(row.sort_key, row.created_at)


def _send(runtime: Runtime, task: TaskName, request_id: UUID) -> None:
    """Send the task that the request waits for; the sweep does, where this fails."""
    runtime.sender.send(task, str(request_id))


def _values(runtime: Runtime, class_id: int, new: NewRequest) -> dict[str, Any]:
    requirements, operation = new.requirements, new.operation
    return {
        **new.terms.values(new.caller, requirements.models),
        "id": new.id,
        "user_id": new.caller.user_id,
        "key": operation.key if operation else None,
        "scope": operation.scope if operation else "",
        "fingerprint": operation.fingerprint if operation else None,
        "is_chat": requirements.is_chat,
        "streams": new.streams,
        "class_id": class_id,
        "requirements": Jsonb(requirements.stored()),
        "max_length": requirements.max_length,
        "max_context_length": requirements.max_context_length,
        "images": requirements.images,
        "tools": requirements.tools,
        "tools_temperature": requirements.tools_temperature,
        "context_tokens": new.context_tokens,
        "job_ttl_seconds": job_ttl_seconds(
            max_length=requirements.max_length,
            context_tokens=new.context_tokens,
            floor=runtime.settings.generation_ttl_floor_seconds,
        ),
        "conformance": new.conformance,
        "ageing": AGEING_MILLIKUDOS_PER_SECOND,
        "ttl": new.ttl_seconds,
        "contract": Jsonb(dict(new.contract)),
        "prompt": new.prompt,
        "submitted_prompt": new.submitted_prompt,
        "state": new.state.value,
        "folder": new.media.folder if new.media else None,
        "sources": Jsonb(list(new.media.sources) if new.media else []),
        "rescue": runtime.settings.rescue_after_seconds,
    }


_STATEMENT = """
    WITH standing AS MATERIALIZED ({standing}
    ), admitted AS (
        SELECT 1 FROM standing WHERE {admitted}
    ), claimed AS (
        INSERT INTO operation_keys (user_id, scope, key, fingerprint, request_id)
        SELECT :user_id, :scope, CAST(:key AS text), CAST(:fingerprint AS text), :id
        FROM admitted WHERE CAST(:key AS text) IS NOT NULL
        ON CONFLICT DO NOTHING
        RETURNING request_id
    ), wanted AS (
        SELECT request_id AS id FROM claimed
        UNION ALL
        SELECT CAST(:id AS uuid) FROM admitted WHERE CAST(:key AS text) IS NULL
    ), made AS (
        INSERT INTO horde_requests (id, user_id, key_id, is_chat, streams, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, hold, n, waiting, sort_key,
            expires_at)
        SELECT id, :user_id, CAST(:metered_key AS bigint), :is_chat, :streams, CAST(:state AS text), :class_id,
            :requirements, :max_length, :max_context_length, :context_tokens, :job_ttl_seconds, :conformance, :quote,
            CAST(:hold AS bigint), :n, :n,
            extract(epoch FROM now()) * CAST(:ageing AS float8) - CAST(:priority AS float8),
            now() + make_interval(secs => :ttl)
        FROM wanted
        RETURNING id, user_id, class_id, sort_key, max_length, max_context_length, created_at
    ), bodies AS (
        INSERT INTO request_bodies (request_id, contract, prompt, submitted_prompt)
        SELECT id, :contract, :prompt, :submitted_prompt FROM made
    ), held AS ({hold}
    ), entered AS (
        INSERT INTO queue_entries (request_id, slot, user_id, class_id, sort_key, max_length, max_context_length,
            images, tools, tools_temperature)
        SELECT id, slot, user_id, class_id, sort_key, max_length, max_context_length, :images, :tools,
            :tools_temperature
        FROM made CROSS JOIN generate_series(0, CAST(:n AS int) - 1) slot
        WHERE CAST(:state AS text) = 'queued'
    ), media AS (
        INSERT INTO request_media (request_id, folder, sources, next_dispatch_at)
        SELECT id, CAST(:folder AS text), CAST(:sources AS jsonb), now() + make_interval(secs => :rescue)
        FROM made WHERE CAST(:folder AS text) IS NOT NULL
    )
    SELECT standing.*, made.id AS request_id, made.sort_key, made.created_at
    FROM standing LEFT JOIN made ON true
"""

STORE = text(_STATEMENT.format(standing=STANDING, admitted=ADMITTED, hold=HOLD))
STORE_ANONYMOUS = text(_STATEMENT.format(standing=ANONYMOUS_STANDING, admitted=ADMITTED, hold=HOLD))
