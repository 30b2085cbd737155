"""Rows of the compatibility checklist (wire reference, section 8) for bridges; each name carries its number."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.domain.system_accounts import ANONYMOUS_KEY
from tests.support.horde import KEYS
from tests.support.text_bridge import TextBridge

ALWAYS_THERE = {
    "payload", "id", "ids", "messages", "ttl", "extra_source_images", "skipped", "softprompt", "model",
}  # fmt: skip

KOBOLD_TIMEOUT_SECONDS = 300
LONGEST_HOLD_SECONDS = 25


def test_row_01_an_empty_pop_is_200_with_every_key(bridge: TextBridge) -> None:
    answer = bridge.pop()
    assert answer.status == 200
    body = answer.json()
    assert body.keys() >= ALWAYS_THERE
    assert (body["id"], body["ids"], body["messages"], body["softprompt"]) == (None, [], [], None)
    assert body["payload"]["max_length"] == 80
    assert isinstance(body["skipped"], dict)


def test_row_01_a_pop_is_held_for_less_than_any_bridge_waits(bridge: TextBridge) -> None:
    started = time.monotonic()
    assert bridge.pop(wait=KOBOLD_TIMEOUT_SECONDS).status == 200
    assert time.monotonic() - started < LONGEST_HOLD_SECONDS


def test_row_02_empty_soft_prompts_and_priority_usernames_are_accepted(bridge: TextBridge) -> None:
    assert bridge.pop(softprompts=[], priority_usernames=[]).status == 200


def test_row_03_a_submit_sent_twice_is_paid_once(bridge: TextBridge) -> None:
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
    assert bridge.status(request_id)["done"]


def test_row_04_a_scribe_fault_requeues_once_however_often_it_is_sent(bridge: TextBridge) -> None:
    request_id = bridge.ask()
    job = bridge.pop().json()["id"]
    for _ in range(2):
        answer = bridge.post("submit", {"id": job, "state": "faulted", "generation": "faulted", "seed": -1})
        assert (answer.status, answer.json()["reward"]) == (200, 0)
    found = bridge.status(request_id)
    assert (found["waiting"], found["restarted"], found["done"]) == (1, 1, False)


def test_row_15_the_anonymous_account_runs_no_worker(bridge: TextBridge) -> None:
    answer = bridge.pop(key=ANONYMOUS_KEY, name="anonymous")
    assert (answer.status, answer.json()["rc"]) == (403, "AnonForbiddenWorker")


def test_row_16_a_name_belongs_to_its_first_owner(bridge: TextBridge) -> None:
    bridge.pop()
    answer = bridge.pop(key=KEYS.demo)
    assert (answer.status, answer.json()["rc"]) == (403, "WrongCredentials")


def test_row_17_a_worker_in_maintenance_gets_its_owners_jobs_and_no_others(bridge: TextBridge) -> None:
    worker_id = bridge.pop().json()["worker_id"]
    answer = bridge.send("PUT", f"/workers/{worker_id}", {"maintenance": True}, key=KEYS.worker)
    assert (answer.status, answer.json()) == (200, {"maintenance": True})
    bridge.ask(KEYS.demo)
    refused = bridge.pop()
    assert (refused.status, refused.json()["rc"]) == (403, "WorkerMaintenance")
    bridge.ask(KEYS.worker, prompt="mine")
    assert bridge.pop().json()["payload"]["prompt"] == "mine"
    bridge.send("PUT", f"/workers/{worker_id}", {"maintenance": False}, key=KEYS.worker)
    assert bridge.pop().json()["payload"]["prompt"] == "Once upon"


@pytest.mark.parametrize(("amount", "pops"), [(3, 1), (1, 3)])
def test_row_20_three_wanted_are_three_delivered(bridge: TextBridge, amount: int, pops: int) -> None:
    request_id = bridge.ask(params={"n": 3})
    taken: list[list[str]] = []
    while ids := bridge.pop(amount=amount).json()["ids"]:
        taken.append(ids)
        assert bridge.status(request_id)["waiting"] >= 0
    jobs = [job for ids in taken for job in ids]
    assert (len(taken), len(jobs), len(set(jobs))) == (pops, 3, 3)
    for job in jobs:
        assert bridge.submit(job).status == 200
    found = bridge.status(request_id)
    assert (found["done"], found["finished"], found["waiting"], len(found["generations"])) == (True, 3, 0, 3)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_row_25_two_workers_share_a_thousand_requests_without_a_double_or_a_loss(browser: TextBridge) -> None:
    browser.horde.query("UPDATE users SET concurrency = 2000 WHERE username = 'demo'")
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda _: browser.ask(params={"max_length": 16}), range(1000)))

    def work(name: str) -> list[str]:
        mine: list[str] = []
        while (job := browser.pop(name=f"{name} {browser.model}").json()["id"]) is not None:
            mine.append(job)
            assert browser.submit(job).status == 200
        return mine

    with ThreadPoolExecutor(2) as pool:
        jobs = Counter(job for mine in pool.map(work, ("one", "two")) for job in mine)
    browser.horde.query("UPDATE users SET concurrency = NULL WHERE username = 'demo'")
    assert (len(jobs), max(jobs.values())) == (1000, 1)
    ended = browser.horde.query(
        "SELECT count(*) FROM horde_requests WHERE state = 'done' AND id::text = ANY(:ids)", ids=asked
    )
    assert ended == [(1000,)]
    browser.asked.clear()
