"""The queue against a model of it: who is handed what, in which order, whatever happened before."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.errors import HordeError, WorkerMaintenance
from app.services.sweep import sweep
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World

WORKERS: tuple[dict[str, Any], ...] = (
    {"name": "small", "model_id": "a", "max_length": 300},
    {"name": "large", "model_id": "a", "max_length": 2000},
    {"name": "other", "model_id": "b", "max_length": 2000},
)
SIZES = (200, 400, 1500)
MAX_FAULTS = 3


@dataclass
class Expected:
    """What the model knows of one request."""

    id: UUID
    model: str
    size: int
    order: float
    state: str = "queued"
    generation: UUID | None = None
    failed_by: list[str] = field(default_factory=list)


@dataclass
class Model:
    """The queue as it ought to be."""

    requests: list[Expected] = field(default_factory=list)

    def eligible(self, worker: dict[str, Any], wanted: Expected) -> bool:
        return worker["model_id"] == wanted.model and wanted.size <= int(str(worker["max_length"]))

    def next_for(self, worker: dict[str, Any]) -> Expected | None:
        """The oldest waiting request that this worker covers, and that it did not fail while another could try."""
        for wanted in sorted(self.requests, key=lambda each: each.order):
            if wanted.state != "queued" or not self.eligible(worker, wanted):
                continue
            others = [
                other["name"]
                for other in WORKERS
                if other is not worker and self.eligible(other, wanted) and other["name"] not in wanted.failed_by
            ]
            if worker["name"] in wanted.failed_by and others:
                continue
            return wanted
        return None

    def running(self) -> list[Expected]:
        return [wanted for wanted in self.requests if wanted.state == "processing"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("ab"), st.sampled_from(SIZES)),
        st.tuples(st.just("pop"), st.sampled_from(range(3)), st.just(0)),
        st.tuples(st.sampled_from(["fault", "time_out", "deliver", "cancel"]), st.integers(0, 9), st.just(0)),
    ),
    min_size=5,
    max_size=25,
)


def _clean(world: World) -> None:
    world.execute(
        "TRUNCATE horde_requests, request_bodies, queue_entries, generations, replies, operation_keys CASCADE"
    )
    world.execute("DELETE FROM ledger_entries WHERE business_key LIKE 'upfront:%'")
    world.execute("UPDATE workers SET aborts = 0, maintenance = false, failed_at = NULL")
    for worker in WORKERS:
        world.pop(**worker)
    world.online._taken_at = float("-inf")


def _holder(world: World, generation: UUID | None) -> str:
    rows = world.execute(
        "SELECT w.name FROM generations g JOIN workers w ON w.id = g.worker_id WHERE g.id = :id", id=generation
    )
    return str(rows[0][0])


def _order(world: World, request_id: UUID) -> float:
    """Where priority and age place a request: kudos that a cancel gives back outweigh an older request's moments."""
    rows = world.execute("SELECT sort_key FROM horde_requests WHERE id = :id", id=request_id)
    return float(str(rows[0][0]))


def _fail(world: World, model: Model, wanted: Expected, kind: str) -> None:
    assert wanted.generation is not None
    if kind == "fault":
        world.replies.fault(world.owner_key, wanted.generation, "backend_error")
    else:
        world.execute(
            "UPDATE generations SET deadline_at = now() - interval '1 s' WHERE id = :id", id=wanted.generation
        )
        sweep(world.runtime)
    wanted.failed_by.append(_holder(world, wanted.generation))
    wanted.state = "faulted" if len(wanted.failed_by) == MAX_FAULTS else "queued"


def _end(world: World, wanted: Expected, kind: str) -> None:
    if kind == "cancel":
        world.cancel(wanted.id, api_key=world.requester_key, trusted_front=False)
        wanted.state = "cancelled"
        return
    assert wanted.generation is not None
    world.deliver(wanted.generation)
    verify_generation(world.runtime, wanted.generation)
    wanted.state = "done"


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=STEPS)
def test_every_pop_gets_what_the_model_says(world: World, steps: list[tuple[str, object, int]]) -> None:
    _clean(world)
    model = Model()
    for kind, what, size in steps:
        if kind == "ask":
            accepted = world.ask(model=what, max_tokens=size)
            # A size that no online worker of the model serves is lowered; every model here has one of 2 000.
            model.requests.append(Expected(accepted.id, str(what), size, _order(world, accepted.id)))
        elif kind == "pop":
            worker = WORKERS[int(str(what))]
            expected, job = model.next_for(worker), world.pop(**worker)
            assert (job.id is None) == (expected is None), worker["name"]
            if expected is not None:
                assert world.execute("SELECT request_id FROM generations WHERE id = :id", id=job.id) == [(expected.id,)]
                expected.state, expected.generation = "processing", job.id
        elif model.running():
            wanted = model.running()[int(str(what)) % len(model.running())]
            if kind in {"fault", "time_out"}:
                _fail(world, model, wanted, kind)
            else:
                _end(world, wanted, kind)
    for wanted in model.requests:
        assert world.state_of("horde_requests", wanted.id) == wanted.state
    world.require_sound()


REQUESTS = 600
POPPERS = 40


@dataclass
class Soak:
    """What the workers of the soak saw, under one lock."""

    lock: Lock = field(default_factory=Lock)
    holders: dict[UUID, str] = field(default_factory=dict)
    twice: list[UUID] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)


def _declared(number: int) -> dict[str, Any]:
    return {
        "name": f"soak-{number}",
        "model_id": ("a", "b", "c")[number % 3],
        "max_length": (300, 700, 2000)[number // 3 % 3],
        "chat_features": ["prompt_overflow_refused", *(["tools", "tool_choice_auto_faithful"] if number % 2 else [])],
    }


def _work(world: World, soak: Soak, number: int) -> None:
    """Pop until there is nothing left that this worker may have: deliver, fault, time out, or vanish."""
    declared, idle = _declared(number), 0
    while idle < 5:
        try:
            job = world.pop(**declared)
        except WorkerMaintenance:
            # One job in seven ends badly here: its owner sends it back to work.
            world.execute(
                "UPDATE workers SET maintenance = false, aborts = 0 WHERE name = :name", name=declared["name"]
            )
            continue
        if job.id is None:
            idle += 1
            sweep(world.runtime)
            continue
        idle = 0
        payload = job.payload or {}
        request_id = UUID(str(world.execute("SELECT request_id FROM generations WHERE id = :id", id=job.id)[0][0]))
        with soak.lock:
            if request_id in soak.holders:
                soak.twice.append(request_id)
            soak.holders[request_id] = str(declared["name"])
            if payload["max_length"] > int(str(declared["max_length"])) or ("tools" in payload and not number % 2):
                soak.uncovered.append(f"{declared['name']}: {payload['max_length']}")
        _finish(world, soak, job.id, request_id)


def _finish(world: World, soak: Soak, job: UUID, request_id: UUID) -> None:
    chance = sha256(job.bytes).digest()[0] / 256
    with soak.lock:
        del soak.holders[request_id]
    try:
        if chance < 0.05:
            world.replies.fault(world.owner_key, job, "backend_error")
        elif chance < 0.1:
            # It dies: the job's time ends, and the sweep of some process sees it.
            world.execute("UPDATE generations SET deadline_at = now() - interval '1 s' WHERE id = :id", id=job)
        elif chance < 0.12:
            world.release(job)
        else:
            world.deliver(job)
            verify_generation(world.runtime, job)
    except HordeError:
        # The sweep ended the job first.
        return


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_forty_workers_share_many_requests_without_a_loss(world: World) -> None:
    world.enrich()
    for number in range(POPPERS):
        world.pop(**_declared(number))
    world.online._taken_at = float("-inf")
    tool = [{"type": "function", "function": {"name": "f"}}]
    for number in range(REQUESTS):
        more: dict[str, Any] = {"tools": tool} if number % 4 == 0 else {}
        world.ask(model=("a", "b", "c")[number % 3], max_tokens=(200, 600, 1500)[number // 3 % 3], **more)
    soak = Soak()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _work(world, soak, number), range(POPPERS)))
    assert (soak.twice, soak.uncovered) == ([], [])
    for number in range(POPPERS):
        _work(world, soak, number)
    rows = world.execute("SELECT state, count(*) FROM horde_requests GROUP BY state")
    states = {str(state): int(str(count)) for state, count in rows}
    assert set(states) <= {"done", "faulted"}, states
    assert sum(states.values()) == REQUESTS
    assert states["done"] > 0.95 * REQUESTS
