"""Existing bridges and clients over HTTP, through the front: the rows of the compatibility list on pops and faults."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
import urllib3

from app.domain.system_accounts import ANONYMOUS_KEY
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until

KOBOLD_AGENT = "KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp"


class Bridge:
    """A koboldcpp-like bridge and the client that asks for its model."""

    def __init__(self, horde: HordeProcesses, http: urllib3.PoolManager) -> None:
        self.horde = horde
        self.http = http
        self.model = f"koboldcpp/Flow-8B-{uuid4().hex[:8]}"
        self.asked: list[str] = []

    def post(self, path: str, body: dict[str, Any], key: str = KEYS.worker) -> urllib3.BaseHTTPResponse:
        return self.http.request(
            "POST", f"{self.horde.front}/api/v2/generate/text/{path}", json=body, headers={"apikey": key}
        )

    def pop(self, key: str = KEYS.worker, **more: Any) -> urllib3.BaseHTTPResponse:
        body = {
            "name": f"Box {self.model}",
            "models": [self.model],
            "max_length": 512,
            "max_context_length": 8192,
            "priority_usernames": [],
            "softprompts": [],
            "bridge_agent": KOBOLD_AGENT,
            "wait": 0,
        }
        return self.post("pop", body | more, key)

    def ask(self, key: str = KEYS.demo, **more: Any) -> str:
        body = {"prompt": "Once upon", "models": [self.model], "gui_settings": True}
        answer = self.post("async", body | more, key)
        assert answer.status == 202, answer.data
        self.asked.append(answer.json()["id"])
        return self.asked[-1]

    def cancel(self, request_id: str) -> dict[str, Any]:
        url = f"{self.horde.front}/api/v2/generate/text/status/{request_id}"
        return dict(self.http.request("DELETE", url).json())

    def status(self, request_id: str) -> dict[str, Any]:
        answer = self.http.request("GET", f"{self.horde.front}/api/v2/generate/text/status/{request_id}")
        assert answer.status == 200
        return dict(answer.json())

    def submit(self, job: str, text: str = " a time") -> urllib3.BaseHTTPResponse:
        return self.post("submit", {"id": job, "generation": text, "state": "ok"})


@pytest.fixture
def bridge(horde: HordeProcesses) -> Any:
    with urllib3.PoolManager(timeout=60, maxsize=4) as http:
        made = Bridge(horde, http)
        yield made
        # Nothing stays open for other flows to find.
        for request_id in made.asked:
            made.cancel(request_id)


def test_row_1_an_empty_pop_has_every_key(bridge: Bridge) -> None:
    answer = bridge.pop()
    assert answer.status == 200
    body = answer.json()
    assert (body["id"], body["ids"], body["messages"], body["softprompt"]) == (None, [], [], None)
    assert body["payload"]["max_length"] == 80
    assert isinstance(body["skipped"], dict)


def test_row_2_empty_lists_in_a_declaration_are_taken(bridge: Bridge) -> None:
    answer = bridge.pop(softprompts=[], priority_usernames=[], blacklist=[])
    assert (answer.status, answer.json()["declaration_warnings"]) == (200, [])


def test_row_3_a_submit_sent_twice_is_paid_once(bridge: Bridge) -> None:
    request_id = bridge.ask()
    job = bridge.pop().json()
    assert (job["payload"]["prompt"], job["payload"]["n"], job["model"]) == ("Once upon", 1, bridge.model)
    first, second = bridge.submit(job["id"]), bridge.submit(job["id"])
    assert (first.status, second.status) == (200, 200)
    assert first.json()["reward"] == second.json()["reward"] > 0
    bridge.horde.require_sound()
    charged = bridge.horde.query(
        "SELECT count(*) FROM ledger_entries WHERE kind = 'charge' AND business_key = :key",
        key=f"generation:{job['id']}",
    )
    assert charged == [(1,)]
    found = bridge.status(request_id)
    assert (found["done"], found["generations"][0]["text"]) == (True, " a time")


def test_row_22_a_result_is_read_as_often_as_anybody_likes(bridge: Bridge) -> None:
    request_id = bridge.ask()
    assert bridge.submit(bridge.pop().json()["id"]).status == 200
    first = bridge.status(request_id)
    assert first["done"]
    assert bridge.status(request_id) == first


def test_row_4_a_scribe_fault_requeues_once_however_often_it_is_sent(bridge: Bridge) -> None:
    request_id = bridge.ask()
    job = bridge.pop().json()["id"]
    for _ in range(2):
        answer = bridge.post("submit", {"id": job, "state": "faulted", "generation": "faulted", "seed": -1})
        assert (answer.status, answer.json()["reward"]) == (200, 0)
    found = bridge.status(request_id)
    assert (found["waiting"], found["restarted"], found["done"]) == (1, 1, False)


def test_row_15_the_anonymous_account_runs_no_worker(bridge: Bridge) -> None:
    answer = bridge.pop(key="0000000000", name="anonymous")
    assert (answer.status, answer.json()["rc"]) == (403, "AnonForbiddenWorker")


def test_row_16_a_name_belongs_to_its_first_owner(bridge: Bridge) -> None:
    bridge.pop()
    answer = bridge.pop(key=KEYS.demo)
    assert (answer.status, answer.json()["rc"]) == (403, "WrongCredentials")


def test_row_18_a_model_that_nobody_serves_becomes_possible_when_a_worker_comes(bridge: Bridge) -> None:
    answer = bridge.post("async", {"prompt": "x", "models": [bridge.model]}, KEYS.demo)
    assert (answer.status, isinstance(answer.json()["message"], str)) == (202, True)
    request_id = answer.json()["id"]
    bridge.asked.append(request_id)
    assert not bridge.status(request_id)["is_possible"]
    # A worker too small for it: online, yet it does not make the request possible.
    bridge.pop(name=f"tiny {bridge.model}", max_length=16)
    assert not bridge.status(request_id)["is_possible"]
    bridge.pop()
    wait_until(lambda: bool(bridge.status(request_id)["is_possible"]), 5, "the request stays impossible")


def test_row_19_three_faults_end_the_request(bridge: Bridge) -> None:
    request_id = bridge.ask()
    for _ in range(3):
        bridge.post("submit", {"id": bridge.pop().json()["id"], "state": "faulted"})
    found = bridge.status(request_id)
    assert (found["faulted"], found["done"], found["generations"]) == (True, True, [])


@pytest.mark.parametrize("amount", [1, 3])
def test_row_20_three_wanted_are_three_delivered(bridge: Bridge, amount: int) -> None:
    request_id = bridge.ask(params={"n": 3})
    jobs: list[str] = []
    while ids := bridge.pop(amount=amount).json()["ids"]:
        jobs.extend(ids)
    assert len(set(jobs)) == 3
    for job in jobs:
        assert bridge.submit(job).status == 200
    found = bridge.status(request_id)
    assert (found["finished"], found["waiting"], len(found["generations"])) == (3, 0, 3)


def test_row_25_two_workers_share_many_requests_without_a_double(bridge: Bridge) -> None:
    # Anonymous, since an account of its own may have no more than 30 waiting.
    asked = {bridge.ask(ANONYMOUS_KEY, params={"n": 10}) for _ in range(10)}

    def work(name: str) -> list[str]:
        mine: list[str] = []
        while (job := bridge.pop(name=f"{name} {bridge.model}").json()["id"]) is not None:
            mine.append(job)
            assert bridge.submit(job).status == 200
        return mine

    with ThreadPoolExecutor(2) as pool:
        jobs = [job for mine in pool.map(work, ("one", "two")) for job in mine]
    assert len(jobs) == len(set(jobs)) == 100
    assert all(bridge.status(each)["done"] for each in asked)


def test_row_24_unknown_keys_and_whole_floats_are_accepted(bridge: Bridge) -> None:
    request_id = bridge.ask(params={"max_length": 80.0, "mirostat": 2}, client_agent="x")
    payload = bridge.pop().json()["payload"]
    assert (payload["max_length"], "mirostat" in payload) == (80, False)
    assert bridge.cancel(request_id)["done"]


def test_row_11_a_value_out_of_range_is_named_by_its_path(bridge: Bridge) -> None:
    answer = bridge.post("async", {"prompt": "x", "params": {"max_length": 8}}, KEYS.demo)
    assert answer.status == 400
    assert list(answer.json()["errors"]) == ["params.max_length"]
    assert "rc" not in answer.json()


def test_a_chat_id_is_unknown_on_the_text_routes_and_the_reverse(bridge: Bridge) -> None:
    request_id = bridge.ask()
    answer = bridge.http.request(
        "GET", f"{bridge.horde.front}/api/v2/generate/chat/status/{request_id}", headers={"apikey": KEYS.demo}
    )
    assert (answer.status, answer.json()["rc"]) == (404, "RequestNotFound")


def test_a_held_pop_gets_the_job_that_comes_while_it_waits(bridge: Bridge) -> None:
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: bridge.pop(wait=20).json())
        wait_until(
            lambda: bridge.horde.query("SELECT 1 FROM workers WHERE name = :n", n=f"Box {bridge.model}") != [],
            10,
            "the pop did not arrive",
        )
        bridge.ask()
        assert held.result(15)["id"] is not None
