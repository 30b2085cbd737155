"""What a soak came to, by the database: who had which job when, and whether that was right."""

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from tests.support.horde import HordeProcesses
from tests.support.soak import Soak

COMMIT_SECONDS = 2.0
"""An entry is visible this long after the time that it bears, at the latest."""


@dataclass(frozen=True)
class Lease:
    """One generation, as the database tells it; times are seconds of the epoch.

    Until `free` it was its worker's alone; since `ended` its slot has certainly been back in the queue,
    unless it was delivered. A late reply moves the end of its job, and with it `ended`.
    """

    id: str
    request: str
    slot: int
    worker: str
    popped: float
    free: float
    ended: float
    accepted: bool


@dataclass(frozen=True)
class Asked:
    """One request, as the database tells it."""

    state: str
    n: int
    sort_key: float
    created: float
    ended: float


@dataclass(frozen=True)
class History:
    """Everything that happened to the requests of one soak."""

    requests: dict[str, Asked]
    leases: dict[tuple[str, int], list[Lease]]

    @classmethod
    def read(cls, horde: HordeProcesses, run: str) -> "History":
        requests = horde.query(
            "SELECT id::text, state, n, sort_key, extract(epoch FROM created_at)::float8,"
            " extract(epoch FROM COALESCE(ended_at, 'infinity'))::float8 FROM horde_requests"
            " WHERE requirements -> 'models' ->> 0 LIKE :run",
            run=f"%-{run}",
        )
        leases = horde.query(
            "SELECT g.id::text, g.request_id::text, g.slot, w.name, extract(epoch FROM g.popped_at)::float8,"
            " extract(epoch FROM least(COALESCE(g.ended_at, 'infinity'), g.deadline_at))::float8,"
            " extract(epoch FROM COALESCE(g.ended_at, 'infinity'))::float8, g.state IN ('verified', 'settled')"
            " FROM generations g JOIN workers w ON w.id = g.worker_id WHERE w.name LIKE :run ORDER BY g.popped_at",
            run=f"soak-{run}-%",
        )
        by_slot = defaultdict(list)
        for row in leases:
            lease = Lease(*row)  # type: ignore[arg-type]
            by_slot[lease.request, lease.slot].append(lease)
        return cls({str(row[0]): Asked(*row[1:]) for row in requests}, by_slot)  # type: ignore[arg-type]

    def waits(self, request: str) -> list[tuple[float, float]]:
        """When the slots of a request certainly stood in the queue."""
        asked = self.requests[request]
        found: list[tuple[float, float]] = []
        for slot in range(asked.n):
            leases = self.leases.get((request, slot), [])
            begins = [asked.created, *(math.inf if lease.accepted else lease.ended for lease in leases)]
            ends = [*(lease.popped for lease in leases), asked.ended]
            found += zip(begins, ends, strict=True)
        return [(begin + COMMIT_SECONDS, end) for begin, end in found if begin + COMMIT_SECONDS < end]


def overlaps(history: History) -> list[str]:
    """Jobs that were handed out while the same slot was another worker's."""
    return [
        f"{second.id} while {first.id}"
        for leases in history.leases.values()
        for first, second in pairwise(leases)
        if second.popped < first.free
    ]


def overtaken(history: History, soak: Soak) -> list[str]:
    """Pops that got a request although a better one, covered by the worker, stood in the queue all the while."""
    by_id = {lease.id: lease for leases in history.leases.values() for lease in leases}
    had = defaultdict(set)
    for lease in by_id.values():
        had[lease.worker].add(lease.request)
    waits = {request: history.waits(request) for request in soak.asked}
    in_order = sorted(soak.asked, key=lambda request: history.requests[request].sort_key)
    found = []
    for pop in soak.pops:
        got = by_id[pop.jobs[0]]
        limit = history.requests[got.request].sort_key
        for request in in_order:
            if history.requests[request].sort_key >= limit:
                break
            if request in had[pop.worker.name] or not pop.worker.covers(soak.asked[request]):
                continue
            # Of a pop that was sent again, the first call may have claimed the job.
            if any(begin < min(pop.sent, got.popped) and end > pop.received for begin, end in waits[request]):
                found.append(f"{pop.worker.name} got {got} in {pop}, not {request} that waited {waits[request]}")
    return found


def uncovered(history: History, soak: Soak) -> list[str]:
    """Jobs that a worker got without covering their request."""
    workers = {pop.worker.name: pop.worker for pop in soak.pops}
    return [
        f"{lease.worker} got {soak.asked[lease.request]}"
        for leases in history.leases.values()
        for lease in leases
        if lease.request in soak.asked
        and lease.worker in workers
        and not workers[lease.worker].covers(soak.asked[lease.request])
    ]


def lost(history: History, soak: Soak) -> list[str]:
    """Requests without the end that they ought to have: a reply for every slot, or a third fault.

    A text submit whose answer was lost has no operation key to find the first by, so there may be
    more requests than the clients know.
    """
    found = [f"{request} is not there" for request in soak.asked if request not in history.requests]
    for request, asked in history.requests.items():
        accepted = sum(lease.accepted for slot in range(asked.n) for lease in history.leases.get((request, slot), ()))
        if asked.state not in {"done", "faulted"} or (asked.state == "done" and accepted != asked.n):
            found.append(f"{request} is {asked.state} with {accepted} of {asked.n} replies")
    return found
