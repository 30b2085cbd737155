"""A web process dies in the middle of a streamed job: no text is doubled and no settlement is lost."""

import pytest

from config.fault_points import FaultPoint
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until
from tests.support.streamed_job import StreamedJob


def arm(horde: HordeProcesses, point: FaultPoint) -> None:
    """Start web so that it dies at this point, once."""
    horde.restart("web", fault=point)
    horde.wait_ready()


def come_back(horde: HordeProcesses, point: FaultPoint) -> None:
    """Wait until web has died there and is back."""
    wait_until(lambda: any(horde.folder.glob(f"{point.value}.*.fired")), 30, f"{point.value} was not reached")
    if not horde.is_alive("web"):
        horde.start("web")
    horde.wait_ready()


def test_a_post_whose_answer_was_lost_is_repeated_and_kept_once(horde: HordeProcesses) -> None:
    arm(horde, FaultPoint.PROGRESS_POSTED)
    job = StreamedJob(horde)
    body = {"id": job.id, "seq": 0, "delta": "Hello "}
    assert horde.call("POST", "/api/v2/generate/text/progress", KEYS.worker, body).status != 200
    come_back(horde, FaultPoint.PROGRESS_POSTED)
    assert job.post(0, "Hello ").body == {"cancelled": False, "next_seq": 1}
    cancelled = job.cancel()
    assert [each["message"]["content"] for each in cancelled.body["generations"]] == ["Hello "]


def test_a_cancelled_stream_is_settled_once_although_web_died_after_it(horde: HordeProcesses) -> None:
    arm(horde, FaultPoint.CANCEL_STORED)
    job = StreamedJob(horde)
    job.post(0, "Hello ")
    status = f"/api/v2/generate/chat/status/{job.request_id}"
    assert horde.call("DELETE", status, KEYS.demo).status != 200
    come_back(horde, FaultPoint.CANCEL_STORED)
    again = job.cancel()
    assert again.body["state"] == "cancelled"
    # Its lease was not marked, so the worker goes on; its submit earns what was settled.
    late = job.worker.submit(job.id, {"message": {"content": "Hello there."}, "finish_reason": "stop"})
    assert late.body["reward"] == pytest.approx(again.body["kudos"] - 2)
    booked = horde.query(
        "SELECT count(*) FROM ledger_entries WHERE business_key = :key AND kind = 'charge'", key=f"generation:{job.id}"
    )
    assert booked == [(1,)]


def test_a_restart_of_redis_in_mid_stream_costs_no_reply(horde: HordeProcesses) -> None:
    job = StreamedJob(horde)
    job.post(0, "Hello ")
    horde.services.redis.stop()
    try:
        refused = job.post(1, "there.")
        assert (refused.status, refused.body["rc"]) == (503, "ProgressUnavailable")
    finally:
        horde.services.redis.start()
    assert job.worker.submit(job.id, {"message": {"content": "Hello there."}, "finish_reason": "stop"}).status == 200
    status = horde.call("GET", f"/api/v2/generate/chat/status/{job.request_id}", KEYS.demo)
    assert status.body["generations"][0]["message"]["content"] == "Hello there."
    # The task processes find their broker again in their own time.
    horde.require_sound(90)
