"""Text requests beside chat: the queue they share, and pops that wait for them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.domain.system_accounts import ANONYMOUS_KEY
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until
from tests.support.text_bridge import TextBridge


@pytest.fixture
def bridge(horde: HordeProcesses) -> Iterator[TextBridge]:
    with TextBridge(horde, horde.front) as made:
        yield made


def test_two_workers_share_many_requests_without_a_double(bridge: TextBridge) -> None:
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


def test_a_chat_id_is_unknown_on_the_text_routes_and_the_reverse(bridge: TextBridge) -> None:
    request_id = bridge.ask()
    answer = bridge.send("GET", f"/generate/chat/status/{request_id}", key=KEYS.demo)
    assert (answer.status, answer.json()["rc"]) == (404, "RequestNotFound")


def test_a_held_pop_gets_the_job_that_comes_while_it_waits(bridge: TextBridge) -> None:
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: bridge.pop(wait=20).json())
        wait_until(
            lambda: bridge.horde.query("SELECT 1 FROM workers WHERE name = :n", n=f"Box {bridge.model}") != [],
            10,
            "the pop did not arrive",
        )
        bridge.ask()
        assert held.result(15)["id"] is not None


def test_a_text_that_is_sent_again_under_its_operation_key_is_the_same_request(bridge: TextBridge) -> None:
    body = {"prompt": "Once upon", "models": [bridge.model]}
    headers = {"Operation-Key": f"key of {bridge.model}"}
    first, again = (bridge.send("POST", "/generate/text/async", body, key=KEYS.demo, headers=headers) for _ in range(2))
    bridge.asked.append(first.json()["id"])
    assert (first.status, again.status) == (202, 202)
    assert again.json()["id"] == first.json()["id"]
    other = bridge.send("POST", "/generate/text/async", body | {"prompt": "Twice"}, key=KEYS.demo, headers=headers)
    assert (other.status, other.json()["rc"]) == (409, "OperationKeyMismatch")
