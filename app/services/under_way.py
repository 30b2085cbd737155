"""Ends what accounts have under way that may have nothing more: banned ones, and those that are erased."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from app.services.cancel_request import cancel_open
from app.services.release_job import ReleaseJob
from app.services.runtime import Runtime

BATCH = 200


@dataclass(frozen=True, slots=True)
class Ended:
    """Requests that were cancelled, and jobs that went back to the queue."""

    requests: int = 0
    jobs: int = 0


def end_under_way(runtime: Runtime, user_ids: Sequence[int]) -> Ended:
    """End one batch of what these accounts have under way, and let their workers be offline.

    Requests are cancelled, by the rules of a cancel; jobs of their workers go back to the queue without a fault.
    """
    values = {"ids": list(user_ids), "limit": BATCH}
    with runtime.database.statements() as transaction:
        transaction.execute(_OFFLINE, values)
        requests = transaction.execute(_REQUESTS, values).scalars().all()
        jobs = transaction.execute(_JOBS, values).scalars().all()
    release = ReleaseJob(runtime)
    return Ended(
        requests=sum(cancel_open(runtime, request_id) for request_id in requests),
        jobs=sum(release(generation_id) for generation_id in jobs),
    )


def end_all_under_way(runtime: Runtime, user_ids: Sequence[int]) -> Ended:
    """End everything that these accounts have under way, however much it is."""
    total = Ended()
    while True:
        ended = end_under_way(runtime, user_ids)
        if ended == Ended():
            return total
        total = Ended(total.requests + ended.requests, total.jobs + ended.jobs)


_OFFLINE = text(
    """
    UPDATE workers SET last_seen_at = to_timestamp(0), uptime_from = NULL
    WHERE user_id = ANY(CAST(:ids AS bigint[])) AND deleted_at IS NULL AND last_seen_at > to_timestamp(0)
    """
)

# Each half is read by an index of what is open: an account may have any number of requests that ended.
_REQUESTS = text(
    """
    SELECT r.id FROM horde_requests r
    WHERE r.user_id = ANY(CAST(:ids AS bigint[])) AND r.state IN ('preparing', 'queued')
    UNION
    SELECT r.id FROM generations g JOIN horde_requests r ON r.id = g.request_id
    WHERE g.state = 'leased' AND r.state = 'processing' AND r.user_id = ANY(CAST(:ids AS bigint[]))
    LIMIT :limit
    """
)

_JOBS = text(
    """
    SELECT g.id FROM generations g JOIN workers w ON w.id = g.worker_id
    WHERE w.user_id = ANY(CAST(:ids AS bigint[])) AND g.state = 'leased'
    LIMIT :limit
    """
)
