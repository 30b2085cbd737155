"""Prepares a request's images and lets it into the queue (images I1, I2, I4, I7).

Each attempt is counted in the row when it begins, so one that kills its process counts too.
A store that is away costs no attempt: it delays, with back-off, until the patience is over.
Run twice, late or at once, it comes to the same objects and rows.
"""

from collections.abc import Mapping
from dataclasses import replace
from tempfile import TemporaryFile
from time import monotonic
from typing import Any
from uuid import UUID

import orjson
import structlog
from prometheus_client import Counter, Histogram
from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.adapters.image_decoder import BadImage, DecoderDied, ImageDecoder
from app.adapters.image_fetch import FetchRules, fetch
from app.adapters.object_store import ObjectMissing, StoreAway
from app.domain.errors import ContractRefusal
from app.domain.images.parts import FETCH_FAILED, PARSE_ERROR, TOO_LARGE, UNUSABLE, image_refusal
from app.domain.redis_keys import ChatEvent, QueueSignal
from app.domain.states import RequestState
from app.domain.task_names import TaskName
from app.services.faults import end_request
from app.services.runtime import Runtime
from app.services.stage_images import staged_key
from config.fault_points import FaultPoint, reach

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
BASE64_GROWTH = 4 / 3

REQUESTS_PREPARED = Counter("horde_image_requests", "Requests with images that left `preparing`.", ["outcome"])
PREPARE_SECONDS = Histogram("horde_image_prepare_seconds", "Time from a request with images to its queue entry.")

log = structlog.get_logger()


class PrepareImages:
    """The use case, with the decoder that this process keeps."""

    def __init__(self, runtime: Runtime, decoder: ImageDecoder) -> None:
        self._runtime = runtime
        self._decoder = decoder
        settings = runtime.settings
        self._rules = FetchRules(
            seconds=settings.image_fetch_seconds,
            most_bytes=settings.image_limit_bytes,
            allowed_hosts=settings.fetchable_hosts,
        )

    def __call__(self, request_id: UUID) -> None:
        """Prepare the images of a request; a no-op for one that is not in `preparing`."""
        with self._runtime.database.statements() as transaction:
            row = transaction.execute(_BEGIN, {"id": request_id, "lease": self._lease}).one_or_none()
        reach(FaultPoint.IMAGES_BEGUN)
        if row is None:
            return
        try:
            self._prepare(row)
        except ContractRefusal as refusal:
            fault_preparing(self._runtime, request_id, refusal)
        except DecoderDied:
            self._decoder_died(row)
        except ObjectMissing:
            fault_preparing(self._runtime, request_id, _storage_fault("what was sent is not in the store any more"))
        except StoreAway:
            self._store_away(row)

    @property
    def _lease(self) -> float:
        """Seconds after which a preparation that says nothing is begun again."""
        return self._runtime.settings.rescue_after_seconds + self._runtime.settings.image_fetch_seconds

    def _prepare(self, row: Row[Any]) -> None:
        stored, seconds_left = 0, self._rules.seconds
        with TemporaryFile() as staged:
            self._runtime.store.download(staged_key(row.folder), staged)
            for number, source in enumerate(row.sources):
                if number and not self._still_wanted(row.request_id):
                    return
                staged.seek(source["offset"])
                content = staged.read(source["size"])
                if source["remote"]:
                    begun = monotonic()
                    content = self._fetched(content.decode(), source["path"], max(0.1, seconds_left))
                    seconds_left -= monotonic() - begun
                jpeg = self._normalised(content, source)
                del content
                self._runtime.store.put(source["key"], jpeg, "image/jpeg")
                reach(FaultPoint.IMAGE_STORED)
                stored += len(jpeg)
        self._enqueue(row, stored)

    def _fetched(self, url: str, path: str, seconds: float) -> bytes:
        """Fetch a remote image. A setting may have changed since its submit, so everything is checked again."""
        if not self._runtime.settings.image_fetch:
            raise image_refusal(path, FETCH_FAILED, "this horde fetches no images.")
        with TemporaryFile() as target:
            fetch(url, path, target, replace(self._rules, seconds=seconds))
            target.seek(0)
            return target.read()

    def _normalised(self, content: bytes, source: Mapping[str, Any]) -> bytes:
        try:
            return self._decoder.normalised(content)
        except BadImage as error:
            code = TOO_LARGE if error.too_large else UNUSABLE if error.bad_shape else PARSE_ERROR
            raise image_refusal(source["path"], code, error.reason) from None

    def _still_wanted(self, request_id: UUID) -> bool:
        """Whether the request still waits for its images; its turn is extended, for a next one is coming."""
        with self._runtime.database.statements() as transaction:
            return transaction.execute(_EXTEND, {"id": request_id, "lease": self._lease}).first() is not None

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
            fault_preparing(self._runtime, row.request_id, unusable(row.attempts))
            return
        with self._runtime.database.statements() as transaction:
            transaction.execute(_AGAIN, {"id": row.request_id, "pause": 0.0, "attempts": row.attempts})
        self._runtime.sender.send(TaskName.PREPARE_IMAGES, str(row.request_id))

    def _store_away(self, row: Row[Any]) -> None:
        if row.age >= self._runtime.settings.storage_patience_seconds:
            fault_preparing(self._runtime, row.request_id, _storage_fault("the horde's store could not be reached"))
            return
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**row.failures)
        with self._runtime.database.statements() as transaction:
            transaction.execute(_AGAIN, {"id": row.request_id, "pause": pause, "attempts": row.attempts - 1})


def fault_preparing(runtime: Runtime, request_id: UUID, cause: ContractRefusal) -> None:
    """Fault a request whose images cannot be had; nothing is charged (images I2)."""
    fault = {"rc": cause.code, "message": cause.message, "param": cause.param}
    with runtime.database.transaction() as transaction:
        if transaction.execute(_LOCK_PREPARING, {"id": request_id}).first() is None:
            return
        end_request(runtime, transaction, request_id, RequestState.FAULTED, fault=fault)
    REQUESTS_PREPARED.labels(cause.code).inc()
    log.info("images.refused", request_id=str(request_id), rc=cause.code)


def unusable(attempts: int) -> ContractRefusal:
    """The fault of images that end or outlast the process that decodes them."""
    return ContractRefusal(
        f"The images of this request could not be processed in {attempts} attempts: decoding them takes too much "
        "time or memory. Send them smaller, or save them again as PNG or JPEG.",
        param="messages",
        code=UNUSABLE,
    )


def _storage_fault(reason: str) -> ContractRefusal:
    return ContractRefusal(
        f"The images of this request could not be stored: {reason}. Send the request again.",
        param=None,
        code="storage_unavailable",
    )


_BEGIN = text(
    """
    UPDATE request_media m
    SET attempts = m.attempts + 1, next_dispatch_at = now() + make_interval(secs => :lease)
    FROM horde_requests r
    WHERE m.request_id = :id AND r.id = m.request_id AND r.state = 'preparing'
    RETURNING m.request_id, m.folder, m.sources, m.attempts, m.failures,
        CAST(extract(epoch FROM now() - m.created_at) AS float8) AS age
    """
)

_EXTEND = text(
    """
    UPDATE request_media m SET next_dispatch_at = now() + make_interval(secs => :lease)
    FROM horde_requests r
    WHERE m.request_id = :id AND r.id = m.request_id AND r.state = 'preparing'
    RETURNING 1
    """
)

_AGAIN = text(
    """
    UPDATE request_media SET attempts = :attempts, next_dispatch_at = now() + make_interval(secs => :pause),
        failures = failures + CASE WHEN CAST(:pause AS float8) > 0 THEN 1 ELSE 0 END
    WHERE request_id = :id
    """
)

_CONTRACT = text("SELECT contract FROM request_bodies WHERE request_id = :id")

_LOCK_PREPARING = text("SELECT 1 FROM horde_requests WHERE id = :id AND state = 'preparing' FOR UPDATE")

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
