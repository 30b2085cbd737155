"""Decodes and stores a request's images and lets it into the queue (images I1, I2, I4, I7).

Remote images were fetched before, by a process that may wait (`fetch_images`).
Run twice, late or at once, it comes to the same objects and rows.
"""

from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import IO, Any
from uuid import UUID

import orjson
import structlog
from prometheus_client import Histogram
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.adapters.image_decoder import BadImage, DecoderDied, ImageDecoder
from app.domain.images.parts import PARSE_ERROR, TOO_LARGE, UNUSABLE, image_refusal
from app.domain.redis_keys import ChatEvent, QueueSignal
from app.domain.states import RequestState
from app.domain.task_names import TaskName
from app.services.preparing import (
    REQUESTS_PREPARED,
    begin,
    begin_again,
    fault_preparing,
    given_up,
    next_task,
    settle_failure,
    still_wanted,
)
from app.services.runtime import Runtime
from app.services.stage_images import fetched_key, staged_key
from config.fault_points import FaultPoint, reach

BASE64_GROWTH = 4 / 3

PREPARE_SECONDS = Histogram("horde_image_prepare_seconds", "Time from a request with images to its queue entry.")

log = structlog.get_logger(__name__)


class PrepareImages:
    """The use case, with the decoder that this process keeps."""

    def __init__(self, runtime: Runtime, decoder: ImageDecoder) -> None:
        self._runtime = runtime
        self._decoder = decoder

    def __call__(self, request_id: UUID) -> None:
        """Prepare the images of a request; a no-op for one that is not in `preparing`."""
        row = begin(self._runtime, request_id)
        if row is None:
            return
        if next_task(row.sources) is TaskName.FETCH_IMAGES:
            # Sent by a process of another version, or twice: fetching comes first.
            self._runtime.sender.send(TaskName.FETCH_IMAGES, str(request_id))
        else:
            settle_failure(self._runtime, row, lambda: self._decoded(row))

    def _decoded(self, row: Row[Any]) -> None:
        try:
            self._prepare(row)
        except DecoderDied:
            self._decoder_died(row)

    def _prepare(self, row: Row[Any]) -> None:
        stored, store = 0, self._runtime.store
        with TemporaryFile() as staged:
            store.download(staged_key(row.folder), staged)
            for number, source in enumerate(row.sources):
                if number and not still_wanted(self._runtime, row.request_id):
                    return
                content = store.read(fetched_key(source)) if source["remote"] else _piece(staged, source)
                jpeg = self._normalised(content, source)
                del content
                store.put(source["key"], jpeg, "image/jpeg")
                reach(FaultPoint.IMAGE_STORED)
                stored += len(jpeg)
        self._enqueue(row, stored)

    def _normalised(self, content: bytes, source: Mapping[str, Any]) -> bytes:
        try:
            return self._decoder.normalised(content)
        except BadImage as error:
            code = TOO_LARGE if error.too_large else UNUSABLE if error.bad_shape else PARSE_ERROR
            raise image_refusal(source["path"], code, error.reason) from None

    def _enqueue(self, row: Row[Any], stored: int) -> None:
        with self._runtime.database.statements() as transaction:
            offload = self._is_large(transaction, row.request_id, stored)
            queued = transaction.execute(
                _ENQUEUE, {"id": row.request_id, "offload": offload, "state": RequestState.PREPARING.value}
            ).one_or_none()
            if queued is None:
                return
            signal = QueueSignal(class_id=queued.class_id, requirements=queued.requirements)
            transaction.after_commit(lambda: reach(FaultPoint.IMAGES_PREPARED))
            transaction.after_commit(lambda: self._runtime.bus.publish_queue(signal))
            transaction.after_commit(lambda: self._runtime.bus.publish_chat(row.request_id, ChatEvent.QUEUED))
        REQUESTS_PREPARED.labels("queued").inc()
        PREPARE_SECONDS.observe(max(0.0, queued.seconds))
        log.info("images.prepared", request_id=str(row.request_id), images=len(row.sources))
        if offload:
            self._runtime.sender.send(TaskName.OFFLOAD_MESSAGES, str(row.request_id))

    def _is_large(self, transaction: Transaction, request_id: UUID, stored: int) -> bool:
        """Whether the messages, with these bytes of images in them, are to be offloaded (images I6)."""
        most = self._runtime.settings.offload_bytes
        if most is None:
            return False
        body = transaction.execute(_CONTRACT, {"id": request_id}).one()
        return len(orjson.dumps(body.contract["messages"])) + stored * BASE64_GROWTH > most

    def _decoder_died(self, row: Row[Any]) -> None:
        if row.attempts >= self._runtime.settings.image_attempts:
            fault_preparing(self._runtime, row.request_id, given_up(row.sources, row.attempts))
            return
        begin_again(self._runtime, row, attempts=row.attempts)
        self._runtime.sender.send(TaskName.PREPARE_IMAGES, str(row.request_id))


def _piece(staged: IO[bytes], source: Mapping[str, Any]) -> bytes:
    """Return one image of those that a submit staged together."""
    staged.seek(source["offset"])
    return staged.read(source["size"])


_CONTRACT = text("SELECT contract FROM request_bodies WHERE request_id = :id")

_ENQUEUE = text(
    """
    WITH moved AS (
        UPDATE horde_requests SET state = 'queued' WHERE id = :id AND state = :state
        RETURNING *
    ), entered AS (
        INSERT INTO queue_entries (request_id, slot, user_id, class_id, sort_key, max_length, max_context_length,
            images, tools, tools_temperature)
        SELECT id, slot, user_id, class_id, sort_key, max_length, max_context_length,
            (requirements ->> 'images')::int, (requirements ->> 'tools')::int,
            (requirements ->> 'tools_temperature')::float8
        FROM moved CROSS JOIN generate_series(0, moved.n - 1) slot
    ), media AS (
        UPDATE request_media m SET attempts = 0, failures = 0,
            next_dispatch_at = CASE WHEN :offload THEN now() + interval '30 seconds' END
        FROM moved WHERE m.request_id = moved.id
    )
    SELECT class_id, requirements, CAST(extract(epoch FROM now() - created_at) AS float8) AS seconds FROM moved
    """
)
