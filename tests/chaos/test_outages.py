"""What goes wrong while a part of the horde is away is no worker's fault (native-api N4)."""

from uuid import uuid4

import pytest

from tests.support.hand_worker import HandWorker, Json, call
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until


def _popped(worker: HandWorker) -> tuple[str, Json]:
    """A request that gives its worker minutes, and its job."""
    body = {"model": worker.model, "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 500}
    asked = call("POST", f"{worker.horde.native}/api/v2/generate/chat/async", body, KEYS.demo)
    assert asked.status == 202, asked
    return asked.body["id"], worker.wait_for_job()


def _aborts_after_fault(worker: HandWorker, request_id: str, job: Json) -> int:
    """Report a job as faulted and cancel its request; how many aborts its worker has then."""
    worker.submit(job["id"], {"state": "faulted", "fault": "backend_error"})
    call("DELETE", f"{worker.horde.native}/api/v2/generate/chat/status/{request_id}", key=KEYS.demo)
    rows = worker.horde.query(
        "SELECT aborts FROM workers WHERE name = :name AND failed_at IS NOT NULL", name=f"hand-{worker.model}"
    )
    return int(str(rows[0][0]))


@pytest.mark.slow
def test_a_job_that_failed_over_an_outage_of_the_native_api_counts_no_abort(horde: HordeProcesses) -> None:
    worker = HandWorker(horde, f"outage-{uuid4().hex[:8]}")
    assert worker.pop() is None
    popped = _popped(worker)
    before = horde.query("SELECT count(*) FROM outages")
    horde.kill("web")
    wait_until(
        lambda: bool(horde.query("SELECT 1 FROM heartbeats WHERE name = 'web' AND at < now() - interval '16 s'")),
        60,
        "nobody misses the native API",
    )
    horde.start("web")
    horde.wait_web()
    wait_until(lambda: horde.query("SELECT count(*) FROM outages") > before, 30, "the outage is not written down")
    assert _aborts_after_fault(worker, *popped) == 0
    assert _aborts_after_fault(worker, *_popped(worker)) == 1
