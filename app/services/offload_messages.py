"""Stores a large conversation as one object, its images in it, for workers that take `messages_url` (images I6)."""

import base64
from typing import Any
from uuid import UUID

import orjson
import structlog
from prometheus_client import Counter
from sqlalchemy import text

from app.adapters.object_store import ObjectMissing, StoreAway
from app.domain.images.parts import with_urls
from app.services.runtime import Runtime
from app.services.stage_images import PREFIX, offloaded_key
from config.fault_points import FaultPoint, reach

TURN_SECONDS = 30.0
"""Time after which an offload that says nothing is begun again."""

MESSAGES_OFFLOADED = Counter("horde_messages_offloaded", "Conversations stored as one object.")

log = structlog.get_logger(__name__)


def offload_messages(runtime: Runtime, request_id: UUID) -> None:
    """Store the messages of a request that waits for it. Until then, and if it fails, they go inline."""
    with runtime.database.statements() as transaction:
        row = transaction.execute(_BEGIN, {"id": request_id, "turn": TURN_SECONDS}).one_or_none()
    if row is None:
        return
    try:
        messages = inlined(runtime, row.contract["messages"])
        body = orjson.dumps({"messages": messages})
        runtime.store.put(offloaded_key(row.folder), body, "application/json")
    except StoreAway:
        with runtime.database.statements() as transaction:
            transaction.execute(_STORE_AWAY, {"id": request_id, "most": TURN_SECONDS})
        return
    except ObjectMissing:
        return
    reach(FaultPoint.MESSAGES_OFFLOADED)
    with runtime.database.statements() as transaction:
        transaction.execute(_OFFLOADED, {"id": request_id})
    MESSAGES_OFFLOADED.inc()
    log.info("messages.offloaded", request_id=str(request_id), size=len(body))


def inlined(runtime: Runtime, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return stored messages with the bytes of their images in them.

    Raises StoreAway or ObjectMissing.
    """

    def data_url(_path: str, key: str) -> str:
        if not key.startswith(PREFIX):
            raise ObjectMissing(key)
        return f"data:image/jpeg;base64,{base64.b64encode(runtime.store.read(key)).decode()}"

    return with_urls(messages, data_url)


_BEGIN = text(
    """
    UPDATE request_media m
    SET attempts = m.attempts + 1, next_dispatch_at = now() + make_interval(secs => :turn)
    FROM horde_requests r JOIN request_bodies b ON b.request_id = r.id
    WHERE m.request_id = :id AND r.id = m.request_id AND r.state IN ('queued', 'processing')
      AND m.next_dispatch_at IS NOT NULL AND m.offloaded_at IS NULL
    RETURNING m.folder, b.contract
    """
)

# An outage costs no attempt; the next turn comes with back-off, by the sweep.
_STORE_AWAY = text(
    """
    UPDATE request_media
    SET attempts = attempts - 1, failures = failures + 1,
        next_dispatch_at = now() + make_interval(secs => least(:most, power(2, least(failures, 10))))
    WHERE request_id = :id AND next_dispatch_at IS NOT NULL AND offloaded_at IS NULL
    """
)

_OFFLOADED = text("UPDATE request_media SET offloaded_at = now(), next_dispatch_at = NULL WHERE request_id = :id")
