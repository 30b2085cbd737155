"""What the tasks that prepare a request's images share: its turn, its failures, its end (images I1, I2, I7).

Each attempt is counted in the row when it begins, so one that kills its process counts too.
A store that is away costs no attempt: it delays, with back-off, until the patience is over.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import structlog
from prometheus_client import Counter
from sqlalchemy import Row, text

from app.adapters.image_decoder import decode_seconds
from app.adapters.object_store import ObjectMissing, StoreAway
from app.domain.errors import ContractRefusal
from app.domain.images.parts import FETCH_FAILED, UNUSABLE
from app.domain.states import RequestState
from app.domain.task_names import TaskName
from app.services.faults import end_request
from app.services.runtime import Runtime
from app.services.stage_images import is_to_be_fetched
from config.fault_points import FaultPoint, reach

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0

REQUESTS_PREPARED = Counter("horde_image_requests", "Requests with images that left `preparing`.", ["outcome"])

log = structlog.get_logger(__name__)


def next_task(sources: Sequence[Mapping[str, Any]]) -> TaskName:
    """Return the task that a request in `preparing` waits for: to fetch what is remote, then to prepare."""
    return TaskName.FETCH_IMAGES if any(map(is_to_be_fetched, sources)) else TaskName.PREPARE_IMAGES


def lease_seconds(runtime: Runtime) -> float:
    """Return the seconds after which a preparation that says nothing is begun again.

    It says something after each image, so this is longer than any one may take.
    """
    settings = runtime.settings
    return settings.rescue_after_seconds + max(settings.image_fetch_seconds, decode_seconds(settings))


def waited_for_store(failures: int) -> float:
    """Return the seconds that a request has waited because the store was away so many times.

    Time in a queue is no part of it: only an outage uses up the patience.
    """
    return sum(_pause(earlier) for earlier in range(failures))


def _pause(failures: int) -> float:
    return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(failures, 10))


def begin(runtime: Runtime, request_id: UUID) -> Row[Any] | None:
    """Count an attempt and return the request's media; None for one that is not in `preparing`."""
    with runtime.database.statements() as transaction:
        row = transaction.execute(_BEGIN, {"id": request_id, "lease": lease_seconds(runtime)}).one_or_none()
    reach(FaultPoint.IMAGES_BEGUN)
    return row


def still_wanted(runtime: Runtime, request_id: UUID) -> bool:
    """Whether the request still waits for its images; its turn is extended, for a next one is coming."""
    with runtime.database.statements() as transaction:
        return transaction.execute(_EXTEND, {"id": request_id, "lease": lease_seconds(runtime)}).first() is not None


def settle_failure(runtime: Runtime, row: Row[Any], work: Callable[[], None]) -> None:
    """Do the work; what is wrong with an image or the store delays the request or ends it."""
    try:
        work()
    except ContractRefusal as refusal:
        fault_preparing(runtime, row.request_id, refusal)
    except ObjectMissing:
        fault_preparing(runtime, row.request_id, _storage_fault("what was sent is not in the store any more"))
    except StoreAway:
        _store_away(runtime, row)


def begin_again(runtime: Runtime, row: Row[Any], *, attempts: int, pause: float = 0.0, failures: int = 0) -> None:
    """Let the sweep give the request its next turn after so many seconds, with so many attempts counted.

    `failures` is how many more times the store was away.
    """
    values = {"id": row.request_id, "pause": pause, "attempts": attempts, "failures": failures}
    with runtime.database.statements() as transaction:
        transaction.execute(_AGAIN, values)


def fault_preparing(runtime: Runtime, request_id: UUID, cause: ContractRefusal) -> None:
    """Fault a request whose images cannot be had; nothing is charged (images I2)."""
    fault = {"rc": cause.code, "message": cause.message, "param": cause.param}
    with runtime.database.transaction() as transaction:
        if transaction.execute(_LOCK_PREPARING, {"id": request_id}).first() is None:
            return
        end_request(runtime, transaction, request_id, RequestState.FAULTED, fault=fault)
    REQUESTS_PREPARED.labels(cause.code).inc()
    log.info("images.refused", request_id=str(request_id), rc=cause.code)


def given_up(sources: Sequence[Mapping[str, Any]], attempts: int) -> ContractRefusal:
    """The fault of images that end or outlast the process that fetches or decodes them, each time."""
    if next_task(sources) is TaskName.FETCH_IMAGES:
        return ContractRefusal(
            f"The images of this request could not be fetched in {attempts} attempts. Send the request again.",
            param="messages",
            code=FETCH_FAILED,
        )
    return ContractRefusal(
        f"The images of this request could not be processed in {attempts} attempts: decoding them takes too much "
        "time or memory. Send them smaller, or save them again as PNG or JPEG.",
        param="messages",
        code=UNUSABLE,
    )


def _store_away(runtime: Runtime, row: Row[Any]) -> None:
    if waited_for_store(row.failures) >= runtime.settings.storage_patience_seconds:
        fault_preparing(runtime, row.request_id, _storage_fault("the horde's store could not be reached"))
        return
    begin_again(runtime, row, pause=_pause(row.failures), attempts=row.attempts - 1, failures=1)


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
    RETURNING m.request_id, m.folder, m.sources, m.attempts, m.failures
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
    UPDATE request_media m SET attempts = :attempts, failures = m.failures + :failures,
        next_dispatch_at = now() + make_interval(secs => :pause)
    FROM horde_requests r
    WHERE m.request_id = :id AND r.id = m.request_id AND r.state = 'preparing'
    """
)

_LOCK_PREPARING = text("SELECT 1 FROM horde_requests WHERE id = :id AND state = 'preparing' FOR UPDATE")
