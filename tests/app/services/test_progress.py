"""A job's lease from its pop to its end, over a real Valkey (details D6, D7, D15)."""

from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID

import pytest
from redis import Redis

from app.adapters.database import STATEMENTS
from app.domain.errors import (
    BadRequest,
    InvalidApiKey,
    LeaseEnded,
    LeaseNotFound,
    ProgressCapReached,
    ProgressOutOfStep,
    ProgressUnavailable,
    WrongCredentials,
)
from app.domain.progress import ProgressPost
from app.domain.progress_entries import ProgressEntry
from app.domain.redis_keys import HEARTBEATS, lease_key, progress_key
from app.services.progress import Acknowledgement, PostProgress, RestoreLease
from app.services.sweep import sweep
from app.services.verify_generation import verify_generation
from config.settings import Settings
from tests.app.services.conftest import Listen, World

STREAMED: dict[str, Any] = {"stream": True}


class Worker:
    """The worker's side of one job."""

    def __init__(self, world: World, redis: Redis, generation_id: UUID, request_id: UUID) -> None:
        self.world = world
        self.redis = redis
        self.generation_id = generation_id
        self.request_id = request_id

    def post(self, seq: int, delta: str = "", reasoning: str = "", key: str | None = None) -> Acknowledgement:
        """Post text."""
        post = ProgressPost(generation_id=self.generation_id, seq=seq, delta=delta, reasoning_delta=reasoning)
        return PostProgress(self.world.runtime)(key or self.world.owner_key, post)

    def beat(self) -> Acknowledgement:
        """Post a heartbeat."""
        return PostProgress(self.world.runtime)(self.world.owner_key, ProgressPost(generation_id=self.generation_id))

    def restore(self, key: str | None = None) -> int:
        """Restore the lease and return the next sequence number."""
        return RestoreLease(self.world.runtime)(key or self.world.owner_key, self.generation_id).next_seq

    def entries(self) -> list[ProgressEntry]:
        """What is in the request's stream."""
        found = cast("list[tuple[bytes, dict[bytes, bytes]]]", self.redis.xrange(progress_key(str(self.request_id))))
        return [ProgressEntry.decode(fields) for _, fields in found]

    def texts(self) -> list[str]:
        """The texts in the request's stream."""
        return [entry.delta for entry in self.entries()]

    def lease(self, field: str) -> str | None:
        """A field of the lease."""
        value = self.redis.hget(lease_key(str(self.generation_id)), field)
        return value.decode() if isinstance(value, bytes) else None


@pytest.fixture
def worker(world: World, redis: Redis) -> Worker:
    """A worker with a streamed job."""
    request_id, generation_id = world.leased(**STREAMED)
    return Worker(world, redis, generation_id, request_id)


def cancel(world: World, request_id: UUID) -> dict[str, object]:
    return world.cancel(request_id, api_key=world.requester_key, trusted_front=False)


@pytest.mark.parametrize(
    ("asked", "streamed"),
    [
        ({}, False),
        ({"stream": True}, True),
        ({"stream": True, "response_format": {"type": "text"}}, True),
        ({"stream": True, "response_format": {"type": "json_object"}}, False),
        ({"stream": True, "tools": [{"type": "function", "function": {"name": "f"}}]}, False),
    ],
    ids=["not asked", "plain", "text format", "JSON", "tools"],
)
def test_a_job_is_streamed_when_it_is_asked_so_for_plain_text(
    world: World, redis: Redis, asked: dict[str, Any], streamed: bool
) -> None:
    features = ["prompt_overflow_refused", "tools", "tool_choice_auto_faithful", "json_object", "json_object_enforced"]
    world.pop(chat_features=features)
    world.ask(**asked)
    job = world.pop(chat_features=features)
    assert job.payload is not None
    assert job.payload["stream"] is streamed
    assert redis.hget(lease_key(str(job.id)), "streamed") == (b"1" if streamed else b"0")


def test_a_lease_outlives_its_jobs_deadline_by_a_minute_and_no_more(worker: Worker) -> None:
    left = worker.redis.ttl(lease_key(str(worker.generation_id)))
    [(seconds,)] = worker.world.execute("SELECT extract(epoch FROM deadline_at - now())::int FROM generations")
    assert isinstance(seconds, int)
    assert seconds + 55 <= left <= seconds + 65


def test_the_same_pop_key_keeps_the_lease_and_its_sequence(world: World, redis: Redis) -> None:
    accepted = world.ask(**STREAMED)
    job = world.pop("key-1")
    assert job.id is not None
    worker = Worker(world, redis, job.id, accepted.id)
    worker.post(0, "One")
    again = world.pop("key-1")
    assert again.payload is not None
    assert again.payload["stream"] is True
    assert worker.post(1, "Two") == Acknowledgement(cancelled=False, next_seq=2)


def test_a_post_is_kept_and_rings_the_requests_bell(worker: Worker, listen: Listen) -> None:
    rung = listen(f"horde:chat:{worker.request_id}")
    assert worker.post(0, "Once ", "Hm.") == Acknowledgement(cancelled=False, next_seq=1)
    assert rung() == b'{"event":"progress"}'
    assert worker.entries() == [
        ProgressEntry(generation_id=str(worker.generation_id), seq=0, delta="Once ", reasoning_delta="Hm.", model="m")
    ]


def test_a_post_takes_no_statement(worker: Worker) -> None:
    before = STATEMENTS._value.get()
    worker.post(0, "Once")
    worker.beat()
    assert STATEMENTS._value.get() == before


def test_a_repeated_post_is_acknowledged_and_not_appended(worker: Worker) -> None:
    worker.post(0, "Once")
    worker.post(1, " upon")
    assert worker.post(0, "Once") == Acknowledgement(cancelled=False, next_seq=2)
    assert worker.texts() == ["Once", " upon"]


def test_a_post_that_leaves_one_out_is_told_where_to_go_on(worker: Worker) -> None:
    worker.post(0, "Once")
    with pytest.raises(ProgressOutOfStep) as refused:
        worker.post(2, "a time")
    assert refused.value.metadata == {"next_seq": 1}
    assert worker.texts() == ["Once"]


def test_a_heartbeat_moves_nothing(worker: Worker) -> None:
    worker.post(0, "Once")
    assert worker.beat() == Acknowledgement(cancelled=False, next_seq=1)
    assert worker.texts() == ["Once"]


def test_a_job_that_is_not_streamed_takes_heartbeats_alone(world: World, redis: Redis) -> None:
    request_id, generation_id = world.leased()
    worker = Worker(world, redis, generation_id, request_id)
    assert worker.beat() == Acknowledgement(cancelled=False, next_seq=0)
    with pytest.raises(BadRequest, match="not streamed"):
        worker.post(0, "Once")


def test_another_key_cannot_post(worker: Worker) -> None:
    with pytest.raises(InvalidApiKey):
        worker.post(0, "Once", key="another-key")
    assert worker.texts() == []


def test_a_job_without_a_lease_is_not_found(worker: Worker) -> None:
    worker.redis.flushdb()
    with pytest.raises(LeaseNotFound):
        worker.post(0, "Once")


def test_posts_stop_at_the_cap_and_the_reply_still_counts(worker: Worker) -> None:
    worker.post(0, "x" * 65_000)
    for _ in range(2):
        with pytest.raises(ProgressCapReached) as refused:
            worker.post(1, "é" * 300)
        assert refused.value.metadata == {"next_seq": 1}
    with pytest.raises(ProgressCapReached):
        worker.post(1, "x")
    assert worker.beat() == Acknowledgement(cancelled=False, next_seq=1)
    worker.world.deliver(worker.generation_id)
    verify_generation(worker.world.runtime, worker.generation_id)
    assert worker.world.status(worker.request_id)["state"] == "done"


def test_a_long_reply_may_post_64_bytes_a_token(world: World, redis: Redis) -> None:
    world.enrich()
    world.pop(max_length=2000)
    request_id = world.ask(max_tokens=2000, **STREAMED).id
    job = world.pop(max_length=2000)
    assert job.id is not None
    worker = Worker(world, redis, job.id, request_id)
    worker.post(0, "x" * 128_000)
    with pytest.raises(ProgressCapReached):
        worker.post(1, "x")


def test_a_submit_deletes_the_lease_and_lets_the_stream_expire(worker: Worker, settings: Settings) -> None:
    worker.post(0, "Hello")
    worker.world.deliver(worker.generation_id)
    with pytest.raises(LeaseNotFound):
        worker.post(1, " there")
    assert worker.texts() == ["Hello"]
    assert 0 < worker.redis.ttl(progress_key(str(worker.request_id))) <= settings.progress_retention_seconds
    assert worker.redis.zcard(HEARTBEATS) == 0


def test_a_fault_ends_the_lease_and_says_so_in_the_stream(worker: Worker) -> None:
    worker.post(0, "Hello")
    for _ in range(2):
        worker.world.replies.fault(worker.world.owner_key, worker.generation_id, "backend_error")
    with pytest.raises(LeaseEnded):
        worker.post(1, " there")
    assert worker.entries()[1:] == [ProgressEntry(generation_id=str(worker.generation_id), ended=True)]
    assert worker.redis.zcard(HEARTBEATS) == 0


def test_a_refused_reply_says_in_the_stream_that_its_text_is_void(worker: Worker) -> None:
    worker.post(0, "Hello")
    worker.world.deliver(
        worker.generation_id,
        {
            "message": {"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
            "finish_reason": "tool_calls",
        },
    )
    verify_generation(worker.world.runtime, worker.generation_id)
    assert [entry.ended for entry in worker.entries()] == [False, True]


def test_the_next_worker_posts_under_its_own_generation(worker: Worker) -> None:
    worker.post(0, "Hello")
    worker.world.replies.fault(worker.world.owner_key, worker.generation_id, "backend_error")
    job = worker.world.pop(name="another-box")
    assert job.id is not None
    second = Worker(worker.world, worker.redis, job.id, worker.request_id)
    assert second.post(0, "Good day") == Acknowledgement(cancelled=False, next_seq=1)
    assert [entry.generation_id for entry in worker.entries()] == [
        str(worker.generation_id),
        str(worker.generation_id),
        str(job.id),
    ]


def test_a_lost_lease_is_restored_by_its_workers_key(worker: Worker) -> None:
    worker.post(0, "Hello")
    worker.redis.flushdb()
    assert worker.restore() == 0
    assert worker.post(0, "Hello") == Acknowledgement(cancelled=False, next_seq=1)


def test_a_lease_lost_alone_is_restored_to_where_its_stream_has_come(worker: Worker) -> None:
    worker.post(0, "Hello")
    worker.redis.delete(lease_key(str(worker.generation_id)))
    assert worker.restore() == 1
    assert worker.lease("bytes") == "5"


def test_restoring_a_lease_that_is_there_changes_nothing(worker: Worker) -> None:
    worker.post(0, "Hello")
    assert worker.restore() == 1
    assert worker.post(1, " there") == Acknowledgement(cancelled=False, next_seq=2)


def test_a_lease_is_not_restored_for_another_account(worker: Worker) -> None:
    _, key = worker.world.account("eve")
    worker.redis.flushdb()
    with pytest.raises(WrongCredentials):
        worker.restore(key)


@pytest.mark.parametrize("end", ["fault", "submit", "cancel"])
def test_the_lease_of_a_job_that_has_ended_is_not_restored(worker: Worker, end: str) -> None:
    world = worker.world
    if end == "fault":
        world.replies.fault(world.owner_key, worker.generation_id, "backend_error")
    elif end == "submit":
        world.deliver(worker.generation_id)
    else:
        cancel(world, worker.request_id)
    worker.redis.flushdb()
    with pytest.raises(LeaseEnded):
        worker.restore()


def test_a_job_goes_out_unstreamed_while_redis_is_away(deaf: World) -> None:
    deaf.ask(**STREAMED)
    job = deaf.pop()
    assert job.payload is not None
    assert job.payload["stream"] is False
    assert deaf.execute("SELECT streamed FROM generations") == [(False,)]


def test_a_post_is_refused_by_name_while_redis_is_away(deaf: World, some_id: UUID) -> None:
    with pytest.raises(ProgressUnavailable) as refused:
        PostProgress(deaf.runtime)(deaf.owner_key, ProgressPost(generation_id=some_id))
    assert refused.value.retry_after_seconds == 2


def test_a_job_is_served_and_paid_without_redis(deaf: World) -> None:
    request_id, generation_id = deaf.leased(**STREAMED)
    deaf.deliver(generation_id)
    verify_generation(deaf.runtime, generation_id)
    assert deaf.status(request_id)["state"] == "done"


@pytest.fixture
def deaf(world: World) -> Iterator[World]:
    """A world whose leases are in a Redis that nobody serves."""
    leases = world.runtime.leases
    kept = leases._redis.connection_pool
    leases._redis.connection_pool = Redis(port=1).connection_pool
    yield world
    leases._redis.connection_pool = kept


class TestSilence:
    """What the sweep makes of workers that posted and then stopped (details D15)."""

    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """A worker is taken for dead after a second."""
        return settings.model_copy(update={"heartbeat_seconds": 1.0})

    def watch(self, worker: Worker, seconds: float, *, hears: bool = True) -> None:
        """Let the web process listen and the sweep look, for so long on Redis' clock."""
        until = self.now(worker) + seconds
        while self.now(worker) < until:
            if hears:
                worker.world.runtime.leases.note_listening()
            sweep(worker.world.runtime)

    @staticmethod
    def now(worker: Worker) -> float:
        seconds, microseconds = worker.redis.time()
        return float(seconds + microseconds / 1e6)

    @staticmethod
    def state(worker: Worker) -> str:
        return worker.world.state_of("generations", worker.generation_id)

    def test_a_worker_that_falls_silent_loses_its_job_to_another(self, worker: Worker) -> None:
        worker.beat()
        self.watch(worker, 1.5)
        assert self.state(worker) == "timed_out"
        assert worker.world.state_of("horde_requests", worker.request_id) == "queued"
        assert worker.world.execute("SELECT aborts FROM workers") == [(1,)]
        with pytest.raises(LeaseEnded):
            worker.beat()

    def test_a_worker_that_never_posted_has_until_its_deadline(self, worker: Worker) -> None:
        self.watch(worker, 1.5)
        assert self.state(worker) == "leased"

    def test_a_worker_that_goes_on_posting_keeps_its_job(self, worker: Worker) -> None:
        for _ in range(4):
            worker.beat()
            self.watch(worker, 0.4)
        assert self.state(worker) == "leased"

    def test_a_flush_of_redis_takes_no_job(self, worker: Worker) -> None:
        worker.beat()
        worker.redis.flushdb()
        self.watch(worker, 1.5)
        assert self.state(worker) == "leased"

    def test_silence_counts_only_while_a_web_process_listens(self, worker: Worker) -> None:
        worker.beat()
        self.watch(worker, 1.5, hears=False)
        assert self.state(worker) == "leased"

    def test_silence_counts_anew_after_nobody_looked(self, worker: Worker) -> None:
        worker.beat()
        worker.redis.zadd(HEARTBEATS, {str(worker.generation_id): 0})
        self.watch(worker, 0.5)
        assert self.state(worker) == "leased"

    def test_a_late_reply_of_a_silent_worker_is_taken(self, worker: Worker) -> None:
        worker.beat()
        self.watch(worker, 1.5)
        worker.world.deliver(worker.generation_id)
        verify_generation(worker.world.runtime, worker.generation_id)
        assert worker.world.status(worker.request_id)["state"] == "done"
