"""Progress over HTTP: every arrow of the lease's diagram, from a worker's pop to its end (details D6)."""

from collections.abc import Iterator

import pytest
from redis import Redis

from tests.support.hand_worker import Answered, Json, call
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until
from tests.support.streamed_job import StreamedJob


@pytest.fixture
def job(horde: HordeProcesses) -> StreamedJob:
    """A streamed job, popped."""
    return StreamedJob(horde)


@pytest.fixture
def redis(horde: HordeProcesses) -> Iterator[Redis]:
    """The horde's Redis."""
    client = Redis.from_url(horde.services.redis_url)
    yield client
    client.close()


def test_a_streamed_job_is_posted_in_parts_and_submitted_whole(job: StreamedJob) -> None:
    assert job.job["payload"]["stream"] is True
    first, second = job.post(0, "Hello "), job.post(1, "there.")
    assert (first.status, first.body) == (200, {"cancelled": False, "next_seq": 1})
    assert (second.status, second.body) == (200, {"cancelled": False, "next_seq": 2})
    assert job.worker.submit(job.id, {"message": {"content": "Hello there."}, "finish_reason": "stop"}).status == 200
    after = job.post(2, "More.")
    assert (after.status, after.body["rc"]) == (404, "LeaseNotFound")


def test_a_post_out_of_step_is_answered_with_where_to_go_on(job: StreamedJob) -> None:
    job.post(0, "One")
    refused = job.post(3, "Four")
    assert (refused.status, refused.body["rc"], refused.body["next_seq"]) == (409, "ProgressOutOfStep", 1)
    assert job.post(0, "One").body == {"cancelled": False, "next_seq": 1}
    assert job.post(1, "Two").body == {"cancelled": False, "next_seq": 2}


def test_posts_over_the_cap_stop_and_the_submit_counts(job: StreamedJob) -> None:
    assert job.post(0, "x" * 60_000).status == 200
    refused = job.post(1, "x" * 10_000)
    assert (refused.status, refused.body["rc"], refused.body["next_seq"]) == (413, "ProgressCapReached", 1)
    reply: Json = {"message": {"content": "x" * 70_000}, "finish_reason": "stop"}
    assert job.worker.submit(job.id, reply).status == 200


def test_a_fault_ends_the_lease(job: StreamedJob, redis: Redis) -> None:
    job.post(0, "Hello")
    job.to("submit", {"state": "faulted", "fault": "backend_error"})
    refused = job.post(1, " there")
    assert (refused.status, refused.body["rc"]) == (410, "LeaseEnded")
    assert job.entries(redis)[1:] == [{b"gen": job.id.encode(), b"ended": b"1"}]
    job.cancel()


def test_a_cancel_settles_what_was_posted_and_the_worker_hears_of_it(job: StreamedJob) -> None:
    job.post(0, "Hello ")
    cancelled = job.cancel()
    assert (cancelled.status, cancelled.body["state"]) == (200, "cancelled")
    assert [each["message"]["content"] for each in cancelled.body["generations"]] == ["Hello "]
    assert cancelled.body["kudos"] > 0
    assert job.post(1, "there").body == {"cancelled": True, "next_seq": 1}
    later = job.worker.submit(job.id, {"message": {"content": "Another text."}, "finish_reason": "stop"})
    assert later.status == 200
    assert later.body["reward"] == pytest.approx(cancelled.body["kudos"] - 2)
    status = call("GET", f"{job.horde.native}/api/v2/generate/chat/status/{job.request_id}", None, KEYS.demo)
    assert status.body["generations"] == cancelled.body["generations"]


def test_a_lease_that_redis_lost_is_restored_and_the_reply_comes_whole(job: StreamedJob, redis: Redis) -> None:
    job.post(0, "Hello ")
    redis.delete(f"horde:lease:{job.id}", f"horde:chat:stream:{job.request_id}")
    assert job.post(1, "there.").status == 404
    restored = job.to("lease", {})
    assert (restored.status, restored.body) == (200, {"stream": True, "next_seq": 0})
    assert job.post(0, "Hello there.").status == 200
    assert job.worker.submit(job.id, {"message": {"content": "Hello there."}, "finish_reason": "stop"}).status == 200


def test_a_front_says_what_it_relayed_when_redis_lost_what_was_posted(job: StreamedJob, redis: Redis) -> None:
    job.post(0, "Hello there.")
    redis.delete(f"horde:lease:{job.id}", f"horde:chat:stream:{job.request_id}")
    relayed = {"relayed": {"generation_id": job.id, "content": "Hello", "reasoning_content": ""}}
    cancelled = job.horde.call(
        "DELETE",
        f"/api/v2/generate/chat/status/{job.request_id}",
        None,
        relayed,
        {"Front-Authorization": KEYS.service_passkey},
    )
    assert cancelled.status == 200
    assert [each["message"]["content"] for each in cancelled.body["generations"]] == ["Hello"]


def test_half_a_character_becomes_a_replacement_in_posts_and_replies_alike(job: StreamedJob, redis: Redis) -> None:
    body = b'{"id": "%s", "seq": 0, "delta": "caf\\ud83d", "reasoning_delta": "\\udc00"}' % job.id.encode()
    assert job.to("progress", body).status == 200
    [entry] = job.entries(redis)
    assert entry[b"delta"].decode() == "caf\ufffd"
    assert entry[b"reasoning_delta"].decode() == "\ufffd"
    reply = b'{"id": "%s", "message": {"content": "caf\\ud83d"}, "finish_reason": "stop"}' % job.id.encode()
    assert job.worker.submit(job.id, reply).status == 200
    status = call("GET", f"{job.horde.native}/api/v2/generate/chat/status/{job.request_id}", None, KEYS.demo)
    assert status.body["generations"][0]["message"]["content"] == "caf\ufffd"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"[]", 400, None),
        (b"{", 400, None),
        (b"{}", 400, "id"),
        (b'{"id": "none"}', 404, "id"),
        ({"delta": "x"}, 400, "seq"),
        ({"delta": "x", "seq": -1}, 400, "seq"),
        ({"delta": "x", "seq": True}, 400, "seq"),
        ({"delta": "x", "seq": 1.5}, 400, "seq"),
        ({"delta": "x", "seq": 2**40}, 400, "seq"),
        ({"delta": 5, "seq": 0}, 400, "delta"),
        ({"reasoning_delta": [], "seq": 0}, 400, "reasoning_delta"),
    ],
    ids=str,
)
def test_a_malformed_post_is_refused_by_the_name_of_its_key(
    job: StreamedJob, body: Json | bytes, status: int, param: str | None
) -> None:
    refused = job.to("progress", body)
    assert (refused.status, refused.body["param"]) == (status, param)
    job.cancel()


def test_another_key_cannot_post_or_restore(job: StreamedJob) -> None:
    refused = job.post(0, "Hello", KEYS.demo)
    assert (refused.status, refused.body["rc"]) == (401, "InvalidAPIKey")
    assert job.to("lease", {}, KEYS.demo).status == 403
    job.cancel()


def test_no_lease_outlives_the_requests_of_a_horde_at_rest(job: StreamedJob, redis: Redis) -> None:
    job.post(0, "Hello")
    job.worker.submit(job.id, {"message": {"content": "Hello"}, "finish_reason": "stop"})
    keys = redis.keys("horde:lease:*") + redis.keys("horde:chat:stream:*")
    assert f"horde:lease:{job.id}".encode() not in keys
    assert all(redis.ttl(key) > 0 for key in keys)


def test_a_job_past_its_deadline_ends_its_lease_and_goes_to_another(job: StreamedJob) -> None:
    job.post(0, "Hello")
    job.horde.query("UPDATE generations SET deadline_at = now() WHERE id = :id", id=job.id)
    second = job.worker.wait_for_job()
    assert second["id"] != job.id
    answers: list[Answered] = []

    def is_refused() -> bool:
        answers.append(job.post(len(answers) + 1, " there"))
        return answers[-1].status != 200

    # Another may have the job as soon as that is committed; the lease is ended right after.
    wait_until(is_refused, 10, "the lease goes on")
    assert (answers[-1].status, answers[-1].body["rc"]) == (410, "LeaseEnded")
    job.cancel()
