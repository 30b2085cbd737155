"""Takes what workers post while they write, on Redis alone, and restores the leases that let them (D6, D15)."""

from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from prometheus_client import Counter

from app.adapters.leases import NewLease
from app.domain.errors import (
    BadRequest,
    InvalidApiKey,
    LeaseEnded,
    LeaseNotFound,
    ProgressCapReached,
    ProgressOutOfStep,
    ProgressUnavailable,
)
from app.domain.progress import LeaseState, PostOutcome, ProgressPost, cap_bytes
from app.domain.states import GenerationState
from app.services.accounts import digest
from app.services.runtime import Runtime
from app.services.submit_reply import load_job
from config.fault_points import FaultPoint, reach

LEASE_MARGIN_SECONDS = 60.0
"""A lease outlives its job's deadline by this much, so that a late post hears what became of the job."""

RETRY_AFTER_SECONDS = 2

POSTS = Counter("horde_progress_posts", "Progress posts of workers.", ["outcome"])

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What a worker is told: whether its job was cancelled, and which post comes next."""

    cancelled: bool
    next_seq: int


@dataclass(frozen=True, slots=True)
class RestoredLease:
    """A lease as it stands again."""

    streamed: bool
    next_seq: int


def new_lease(
    *,
    generation_id: UUID,
    request_id: UUID,
    api_key: str,
    model: str,
    streamed: bool,
    max_length: int,
    seconds_left: float,
) -> NewLease:
    """Shape the lease of a job that has this long to go."""
    return NewLease(
        generation_id=generation_id,
        request_id=request_id,
        key_digest=digest(api_key),
        model=model,
        streamed=streamed,
        max_bytes=cap_bytes(max_length),
        life_seconds=max(0.0, seconds_left) + LEASE_MARGIN_SECONDS,
    )


class PostProgress:
    """The use case of a progress post. It never looks into PostgreSQL (details D6)."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __call__(self, api_key: str, post: ProgressPost) -> Acknowledgement:
        """Append a post to its request's stream, once however often it is sent.

        Raises LeaseNotFound, LeaseEnded, InvalidApiKey, ProgressOutOfStep, ProgressCapReached,
        BadRequest for text of a job that is not streamed, or ProgressUnavailable.
        """
        posted = self._runtime.leases.post(digest(api_key), post)
        reach(FaultPoint.PROGRESS_POSTED)
        if posted is None:
            POSTS.labels("unavailable").inc()
            raise _unavailable()
        POSTS.labels(posted.outcome.value).inc()
        _refuse(posted.outcome, posted.next_seq)
        return Acknowledgement(posted.outcome is PostOutcome.CANCELLED, posted.next_seq)


def _refuse(outcome: PostOutcome, next_seq: int) -> None:
    match outcome:
        case PostOutcome.UNKNOWN:
            raise LeaseNotFound("No lease is known for this job. Go on; POST /generate/text/lease renews it.")
        case PostOutcome.ENDED:
            raise _ended()
        case PostOutcome.WRONG_KEY:
            raise InvalidApiKey("This key is not the one that popped the job.")
        case PostOutcome.OUT_OF_STEP:
            raise ProgressOutOfStep(
                f"The next post is {next_seq}. Send again from there.", metadata={"next_seq": next_seq}
            )
        case PostOutcome.FULL:
            raise ProgressCapReached(
                "This job has posted as much as it may. Post no more text; submit the whole reply at its end.",
                metadata={"next_seq": next_seq},
            )
        case PostOutcome.NOT_STREAMED:
            raise BadRequest("delta: this job is not streamed. Post without text, as a heartbeat.", param="delta")
        case PostOutcome.ACCEPTED | PostOutcome.CANCELLED:
            return


class RestoreLease:
    """The use case of a lease that Redis lost (details D15)."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __call__(self, api_key: str, generation_id: UUID) -> RestoredLease:
        """Write the lease of a running chat job again, or take over the one that is there.

        Raises InvalidApiKey, InvalidJobId, WrongCredentials, BadRequest for a text job,
        LeaseEnded when the job does not run any more, or ProgressUnavailable.
        """
        with self._runtime.database.statements() as transaction:
            job = load_job(transaction, api_key, generation_id)
        if not job.is_chat:
            raise BadRequest("id: this is a text job; only chat jobs have leases.", param="id")
        if job.state != GenerationState.LEASED:
            raise _ended()
        lease = new_lease(
            generation_id=generation_id,
            request_id=job.request_id,
            api_key=api_key,
            model=job.model,
            streamed=job.streamed,
            max_length=job.max_length,
            seconds_left=job.seconds_left,
        )
        opened = self._runtime.leases.open(replace(lease, restored=True))
        if opened is None:
            raise _unavailable()
        if opened.state is LeaseState.ENDED:
            raise _ended()
        log.info("lease.restored", generation_id=str(generation_id), request_id=str(job.request_id))
        return RestoredLease(job.streamed, opened.next_seq)


def _ended() -> LeaseEnded:
    return LeaseEnded("This job has ended: it was faulted, timed out, cancelled or submitted. Drop it.")


def _unavailable() -> ProgressUnavailable:
    return ProgressUnavailable(
        "Progress cannot be taken right now. Go on, post again later, and submit the whole reply at its end.",
        retry_after_seconds=RETRY_AFTER_SECONDS,
    )
