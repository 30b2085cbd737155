"""A streamed generation whose client leaves: settled on what was posted (details D7, D15)."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
from redis import Redis

from app.domain.errors import AbortedGen, LeaseEnded, ProgressOutOfStep
from app.domain.progress import PostedText, ProgressPost, Relayed
from app.domain.redis_keys import HEARTBEATS
from app.services.kudos import fold_balances
from app.services.progress import Acknowledgement, PostProgress
from app.services.refresh_queue import measure_speeds
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World

TAX = 1000


class Job:
    """A streamed job under way."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.request_id, self.id = world.leased(stream=True)

    def post(self, seq: int, delta: str = "", reasoning: str = "") -> Acknowledgement:
        """Post text as the worker."""
        post = ProgressPost(generation_id=self.id, seq=seq, delta=delta, reasoning_delta=reasoning)
        return PostProgress(self.world.runtime)(self.world.owner_key, post)

    def cancel(self, relayed: Relayed | None = None) -> dict[str, Any]:
        """Cancel as the client, or as its front, which may say what it relayed."""
        key = None if relayed else self.world.requester_key
        return self.world.cancel(self.request_id, api_key=key, trusted_front=relayed is not None, relayed=relayed)

    def booked(self) -> dict[str, int]:
        """The ledger's entries of this job by kind."""
        rows = self.world.execute(
            "SELECT kind, sum(amount)::bigint FROM ledger_entries WHERE business_key = :key GROUP BY kind",
            key=f"generation:{self.id}",
        )
        return {str(kind): int(str(amount)) for kind, amount in rows}


@pytest.fixture
def job(world: World) -> Job:
    """A streamed job."""
    return Job(world)


def test_a_cancelled_stream_is_settled_on_what_was_posted(job: Job) -> None:
    job.post(0, "Once upon ")
    job.post(1, "a time " * 40)
    status = job.cancel()
    text = "Once upon " + "a time " * 40
    assert status["state"] == "cancelled"
    [generation] = status["generations"]
    assert (generation["state"], generation["message"]["content"], generation["finish_reason"]) == (
        "cancelled",
        text,
        None,
    )
    [(state, tokens, charge, reward)] = job.world.execute("SELECT state, tokens, charge, reward FROM generations")
    assert (state, tokens) == ("settled", -(-len(text) // 4))
    assert isinstance(reward, int)
    assert charge == reward + 1000 + TAX
    assert reward > 0
    booked = job.booked()
    assert booked["charge"] == -charge
    assert booked["reward"] + booked["reward_escrow"] == reward
    fold_balances(job.world.runtime)
    job.world.require_sound(at_rest=True)


def test_posted_reasoning_counts(job: Job) -> None:
    job.post(0, reasoning="Let me think. " * 20)
    [generation] = job.cancel()["generations"]
    assert generation["message"]["content"] is None
    assert generation["message"]["reasoning_content"] == "Let me think. " * 20
    assert job.world.execute("SELECT tokens FROM generations") == [(70,)]


def test_a_stream_cancelled_before_anything_was_posted_costs_and_earns_nothing(job: Job) -> None:
    status = job.cancel()
    assert (status["state"], status["kudos"]) == ("cancelled", 0)
    assert job.world.execute("SELECT state, tokens, charge, reward FROM generations") == [("settled", 0, 0, 0)]
    fold_balances(job.world.runtime)
    job.world.require_sound(at_rest=True)


def test_no_fault_and_no_abort_is_counted_for_a_cancelled_stream(job: Job) -> None:
    job.post(0, "Once")
    job.cancel()
    assert job.world.execute("SELECT aborts, failed_at FROM workers") == [(0, None)]
    assert job.world.execute("SELECT faults FROM horde_requests") == [(0,)]


def test_the_worker_is_told_once_and_then_that_its_lease_has_ended(job: Job) -> None:
    job.post(0, "Once")
    job.cancel()
    assert job.post(1, " upon") == Acknowledgement(cancelled=True, next_seq=1)
    with pytest.raises(LeaseEnded):
        job.post(1, " upon")


def test_a_submit_after_a_cancel_earns_what_was_settled_and_its_text_is_ignored(job: Job) -> None:
    job.post(0, "Once upon a time. " * 10)
    before = job.cancel()
    [(reward,)] = job.world.execute("SELECT reward FROM generations")
    assert isinstance(reward, int)
    receipt = job.world.replies.deliver(job.world.owner_key, job.id, job.world.reply())
    assert receipt.reward == reward / 1000
    verify_generation(job.world.runtime, job.id)
    assert job.world.status(job.request_id)["generations"] == before["generations"]


def test_a_second_cancel_changes_nothing(job: Job) -> None:
    job.post(0, "Once")
    assert job.cancel() == job.cancel()
    assert job.world.execute("SELECT finished FROM horde_requests") == [(1,)]


def test_a_submit_before_the_cancel_wins(job: Job) -> None:
    job.post(0, "Hello")
    job.world.deliver(job.id)
    assert job.cancel()["state"] == "processing"
    verify_generation(job.world.runtime, job.id)
    assert job.world.status(job.request_id)["state"] == "done"


def test_a_fault_reported_after_a_cancel_counts_nothing(job: Job) -> None:
    job.cancel()
    with pytest.raises(AbortedGen):
        job.world.replies.fault(job.world.owner_key, job.id, "backend_error")
    assert job.world.execute("SELECT aborts FROM workers") == [(0,)]


def test_posted_text_that_redis_lost_is_settled_on_what_the_front_relayed(job: Job, redis: Redis) -> None:
    job.post(0, "Once upon a time")
    redis.flushdb()
    [generation] = job.cancel(Relayed(job.id, PostedText("Once upon", "Hm.")))["generations"]
    assert generation["message"]["content"] == "Once upon"
    assert generation["message"]["reasoning_content"] == "Hm."


def test_posted_text_that_redis_lost_in_part_is_settled_on_what_the_front_relayed(job: Job, redis: Redis) -> None:
    job.post(0, "Once upon")
    job.post(1, " a time")
    redis.xtrim(f"horde:chat:stream:{job.request_id}", maxlen=1, approximate=False)
    [generation] = job.cancel(Relayed(job.id, PostedText("Once upon a")))["generations"]
    assert generation["message"]["content"] == "Once upon a"


def test_posted_text_that_redis_has_counts_whatever_the_front_says(job: Job) -> None:
    job.post(0, "Once upon")
    [generation] = job.cancel(Relayed(job.id, PostedText("Something else")))["generations"]
    assert generation["message"]["content"] == "Once upon"


@pytest.mark.parametrize("says", ["nothing", "another generation"])
def test_posted_text_that_is_lost_everywhere_is_settled_on_nothing(
    job: Job, redis: Redis, some_id: UUID, says: str
) -> None:
    job.post(0, "Once")
    redis.flushdb()
    status = job.cancel(Relayed(some_id, PostedText("Once")) if says != "nothing" else None)
    assert (status["state"], status["kudos"]) == ("cancelled", 0)


def test_a_client_cannot_say_what_was_relayed(job: Job, redis: Redis) -> None:
    job.post(0, "Once")
    redis.flushdb()
    relayed = Relayed(job.id, PostedText("Once upon a time"))
    status = job.world.cancel(job.request_id, api_key=job.world.requester_key, trusted_front=False, relayed=relayed)
    assert status["kudos"] == 0


def test_nothing_is_posted_between_the_reading_of_the_text_and_its_settlement(job: Job) -> None:
    job.post(0, "Once")
    frozen = job.world.runtime.leases.freeze(job.request_id, job.id)
    assert frozen is not None
    assert frozen.text.content == "Once"
    with pytest.raises(ProgressOutOfStep):
        job.post(1, " upon")


def test_a_job_that_is_not_streamed_runs_on_after_a_cancel_and_is_not_told_to_stop(world: World) -> None:
    request_id, generation_id = world.leased()
    world.cancel(request_id, api_key=world.requester_key, trusted_front=False)
    beat = PostProgress(world.runtime)(world.owner_key, ProgressPost(generation_id=generation_id))
    assert not beat.cancelled
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    assert world.state_of("generations", generation_id) == "verified"


def test_a_cancelled_stream_leaves_no_heartbeat_and_no_lease_that_lives_on(job: Job, redis: Redis) -> None:
    job.post(0, "Once")
    job.cancel()
    assert redis.zcard(HEARTBEATS) == 0
    assert all(redis.ttl(key) > 0 for key in redis.keys("horde:lease:*") + redis.keys("horde:chat:stream:*"))


def test_a_stream_cancelled_with_nothing_posted_is_no_sample_of_speed(job: Job) -> None:
    job.cancel()
    measure_speeds(job.world.runtime)
    assert job.world.execute("SELECT count(*) FROM worker_speeds") == [(0,)]


@pytest.mark.parametrize("attempt", range(4))
def test_a_cancel_and_a_submit_at_once_come_to_one_settlement(job: Job, attempt: int) -> None:
    job.post(0, "Once upon a time")
    start = Barrier(2)

    def cancel() -> dict[str, Any]:
        start.wait()
        return job.cancel()

    def submit() -> None:
        start.wait()
        job.world.deliver(job.id)

    with ThreadPoolExecutor(2) as pool:
        cancelled, submitted = pool.submit(cancel), pool.submit(submit)
        status = cancelled.result()
        submitted.result()
    verify_generation(job.world.runtime, job.id)
    state = job.world.state_of("generations", job.id)
    assert (status["state"], state) in {("cancelled", "settled"), ("processing", "verified")}


@pytest.mark.parametrize("attempt", range(3))
def test_what_was_acknowledged_before_a_cancel_is_exactly_what_is_settled(job: Job, attempt: int) -> None:
    start = Barrier(2)
    acknowledged: list[str] = []

    def work() -> None:
        start.wait()
        while True:
            text = f"{len(acknowledged)} "
            try:
                if job.post(len(acknowledged), text).cancelled:
                    return
            except ProgressOutOfStep:
                continue  # the cancel is reading: the same post again, as a worker resyncs
            acknowledged.append(text)

    def cancel() -> dict[str, Any]:
        start.wait()
        while not acknowledged:
            continue
        return job.cancel()

    with ThreadPoolExecutor(2) as pool:
        working, cancelled = pool.submit(work), pool.submit(cancel)
        status = cancelled.result()
        working.result()
    [generation] = status["generations"]
    assert generation["message"]["content"] == "".join(acknowledged)


def test_two_cancels_at_once_settle_once(job: Job) -> None:
    job.post(0, "Once upon a time")
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: job.cancel(), range(2))
    assert first["state"] == second["state"] == "cancelled"
    assert job.booked()["charge"] < 0
