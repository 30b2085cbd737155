"""What happens while a part of the horde is away: who is told what, and that no worker is blamed (native-api N4)."""

import time
from uuid import uuid4

import pytest

from tests.chaos.runner import through
from tests.support.hand_worker import HandWorker, Json, call
from tests.support.horde import KEYS, MODEL, Answer, HordeProcesses, answers
from tests.support.services import free_port, wait_until
from tests.support.tcp_proxy import TcpProxy


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


REFUSED_SECONDS, BACK_SECONDS = 5.0, 15.0


def test_without_its_database_the_native_api_says_so_at_once_and_goes_on_when_it_is_back(horde: HordeProcesses) -> None:
    port = free_port()
    with TcpProxy(horde.services.database_url) as line:
        database = through(horde.settings.database_url, line)
        horde.start("web2", DATABASE_URL=database, HORDE_NATIVE_PORT=str(port))
        try:
            root = f"http://127.0.0.1:{port}"
            wait_until(lambda: answers(f"{root}/readyz"), 40, "the second process is not ready")

            def ask() -> Answer:
                body = {"model": MODEL, "messages": [{"role": "user", "content": "Is it back?"}], "max_tokens": 16}
                return horde.call("POST", "/api/v2/generate/chat/async", KEYS.demo, body, root=root)

            assert ask().status == 202
            with line.down():
                asked = time.monotonic()
                refused = ask()
                assert time.monotonic() - asked < REFUSED_SECONDS
                assert (refused.status, refused.body["rc"]) == (503, "service_unavailable")
                assert 1 <= int(refused.headers["retry-after"]) <= 60
            wait_until(lambda: ask().status == 202, BACK_SECONDS, "it does not come back by itself")
        finally:
            horde.kill("web2")
