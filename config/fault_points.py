"""Named places at which a test can kill a process, to prove that nothing is lost there.

There is one after each commit and after each call to the outside. A point does
nothing unless `HORDE_FAULT_POINT` names it; then the first process to reach it
dies by SIGKILL, once: the file that `HORDE_FAULT_MARKER` names records that it
fired, so that the process which comes back lives.
"""

import os
import signal
from enum import StrEnum
from functools import lru_cache
from pathlib import Path


class FaultPoint(StrEnum):
    """Every point there is. A flow test arms each of them in turn."""

    REQUEST_STORED = "request.stored"
    REQUEST_SIGNALLED = "request.signalled"
    GENERATION_LEASED = "generation.leased"
    LEASE_WRITTEN = "lease.written"
    PROGRESS_POSTED = "progress.posted"
    REPLY_STORED = "reply.stored"
    VERDICT_DISPATCHED = "verdict.dispatched"
    FAULT_STORED = "fault.stored"
    VERIFICATION_BEGUN = "verification.begun"
    VERDICT_STORED = "verdict.stored"
    VERDICT_SIGNALLED = "verdict.signalled"
    SETTLEMENT_STORED = "settlement.stored"
    BALANCES_FOLDED = "balances.folded"
    RESERVATION_STORED = "reservation.stored"
    TRANSFER_STORED = "transfer.stored"
    CANCEL_STORED = "cancel.stored"
    IMAGES_STAGED = "images.staged"
    IMAGES_BEGUN = "images.begun"
    IMAGES_FETCHED = "images.fetched"
    IMAGE_STORED = "image.stored"
    IMAGES_PREPARED = "images.prepared"
    MESSAGES_OFFLOADED = "messages.offloaded"
    OBJECTS_DELETED = "objects.deleted"
    FRONT_SUBMITTED = "front.submitted"
    FRONT_ANSWER_READ = "front.answer_read"
    FRONT_CANCELLED = "front.cancelled"


@lru_cache(maxsize=1)
def _armed() -> tuple[str, Path | None]:
    marker = os.environ.get("HORDE_FAULT_MARKER")
    return os.environ.get("HORDE_FAULT_POINT", ""), Path(marker) if marker else None


def reach(point: FaultPoint) -> None:
    """Die here by SIGKILL when a test armed this point and it has not fired yet."""
    name, marker = _armed()
    if point.value != name:
        return
    if marker is not None:
        try:
            marker.touch(exist_ok=False)
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
