"""What existing clients read of a running horde: workers, figures and statistics that its tasks keep."""

import urllib.request
from typing import Any

from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import wait_until


def read(horde: HordeProcesses, path: str, key: str | None = None) -> Any:
    answer = horde.call("GET", f"/api/v2{path}", key)
    assert answer.status == 200, answer
    return answer.body


def test_a_completion_is_counted_by_a_task_and_for_its_worker(horde: HordeProcesses) -> None:
    def counted() -> tuple[int, int]:
        (worker,) = read(horde, "/workers?name=flows")
        return read(horde, "/stats/text/totals")["total"]["requests"], worker["requests_fulfilled"]

    before = counted()
    horde.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello."}])
    wait_until(lambda: counted() > before, 60, "the completion was not counted")
    totals = read(horde, "/stats/text/totals")
    assert totals["month"]["requests"] >= 1
    assert totals["month"]["tokens"] >= 1
    assert read(horde, "/stats/text/models")["total"][MODEL] >= 1


def test_a_worker_is_listed_and_hears_its_owners_message(horde: HordeProcesses) -> None:
    declaration = {"name": "polled by hand", "models": ["koboldcpp/by-hand-8B"], "max_length": 512}
    popped = horde.call("POST", "/api/v2/generate/text/pop", KEYS.worker, declaration).body
    (listed,) = read(horde, "/workers?type=text&name=polled%20by%20hand")
    assert (listed["id"], listed["models"]) == (popped["worker_id"], declaration["models"])

    def is_online() -> bool:
        return "koboldcpp/by-hand-8B" in {model["name"] for model in read(horde, "/status/models?type=text")}

    wait_until(is_online, 10, "the model stays unknown")
    message = {"worker_id": listed["id"], "message": "Update, please."}
    assert horde.call("POST", "/api/v2/workers/messages", KEYS.worker, message).status == 200
    popped = horde.call("POST", "/api/v2/generate/text/pop", KEYS.worker, declaration).body
    assert [each["message"] for each in popped["messages"]] == ["Update, please."]
    deleted = horde.call("DELETE", f"/api/v2/workers/{listed['id']}", KEYS.worker)
    assert deleted.body == {"deleted_id": listed["id"], "deleted_name": "polled by hand"}


def test_a_page_in_a_browser_reads_the_status_through_the_front(horde: HordeProcesses) -> None:
    url = f"{horde.front}/api/v2/status/performance"
    preflight = urllib.request.Request(url, method="OPTIONS")  # noqa: S310 - a URL of ours
    with urllib.request.urlopen(preflight, timeout=20) as answer:  # noqa: S310 - a URL of ours
        assert answer.status == 204
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 - a URL of ours
        assert answer.status == 200
        assert answer.headers.get_all("Access-Control-Allow-Origin") == ["*"]


def test_a_heartbeat_is_answered_while_nothing_else_is_asked(horde: HordeProcesses) -> None:
    beat = read(horde, "/status/heartbeat")
    assert (beat["message"], beat["db_connection"]) == ("OK", True)
