"""Every process dies by SIGKILL in the middle of a request; the request ends rightly once it is back."""

import time

import openai
import pytest

from tests.support.asking import Asking
from tests.support.hand_worker import call
from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import wait_until


@pytest.mark.parametrize("name", ["web", "verdict", "tasks", "beat"])
def test_a_request_is_answered_and_charged_once_although_a_process_died(horde: HordeProcesses, name: str) -> None:
    with Asking(horde, f"[[delay=1.5]]Killing {name}.") as asking:
        asking.wait_for("leased")
        horde.kill(name)
        horde.start(name)
        assert asking.answer().choices[0].message.content == f"Killing {name}."
    horde.require_sound()
    assert asking.charges() == 1


def test_a_request_of_a_worker_that_died_is_served_once_it_is_back(horde: HordeProcesses) -> None:
    with Asking(horde, "[[delay=1]]Killing the worker.", max_tokens=16) as asking:
        asking.wait_for("leased")
        horde.kill("worker")
        horde.start("worker")
        assert asking.answer().choices[0].message.content == "Killing the worker."
    horde.require_sound()
    assert asking.charges() == 1
    assert asking.generation_states() == ["timed_out", "settled"]


def test_a_request_whose_front_died_still_ends_and_is_charged_once(horde: HordeProcesses) -> None:
    with Asking(horde, "[[delay=1.5]]Killing the front.") as asking:
        asking.wait_for("leased")
        horde.kill("front")
        with pytest.raises(openai.APIConnectionError):
            asking.answer()
        horde.start("front")
        wait_until(lambda: asking.request_states() == ["done"], 30, "the request of a dead front does not end")
    horde.require_sound()
    assert asking.charges() == 1


def test_a_backend_that_died_costs_its_requester_nothing(horde: HordeProcesses) -> None:
    with Asking(horde, "[[delay=2]]Killing the backend.") as asking:
        wait_until(lambda: horde.backend_calls() == 1, 30, "the backend is not called")
        horde.kill("backend")
        horde.start("backend")
        wait_until(lambda: "leased" not in asking.generation_states(), 30, "the worker does not notice")
        asking.answer()
    horde.require_sound()
    assert asking.charges() == 1
    assert asking.generation_states() == ["faulted", "settled"]


@pytest.mark.slow
def test_a_reply_that_comes_while_redis_is_down_is_settled_once_and_delivered(horde: HordeProcesses) -> None:
    with Asking(horde, "[[delay=2]]Stopping Redis.") as asking:
        asking.wait_for("leased")
        horde.services.redis.stop()
        try:
            asking.wait_for("submitted")
            wait_twenty_seconds(horde)
        finally:
            horde.services.redis.start()
        assert asking.answer().choices[0].message.content == "Stopping Redis."
    horde.require_sound(60)
    assert asking.charges() == 1


def wait_twenty_seconds(horde: HordeProcesses) -> None:
    """Let PostgreSQL's clock, by which every period here runs, go on for 20 seconds."""
    until = horde.query("SELECT now() + interval '20 seconds'")[0][0]
    wait_until(lambda: horde.query("SELECT now() > :until", until=until) == [(True,)], 30, "time stands still")


def test_requests_are_accepted_and_answered_while_redis_is_down(horde: HordeProcesses) -> None:
    horde.services.redis.stop()
    try:
        with Asking(horde, "Asking without Redis.") as asking:
            asking.wait_for("submitted")
            horde.services.redis.start()
            assert asking.answer().choices[0].message.content == "Asking without Redis."
    finally:
        if not horde.services.redis.is_running:
            horde.services.redis.start()
    horde.require_sound(60)
    assert asking.charges() == 1


ACCEPTED_SECONDS = 2.0


def test_a_request_is_accepted_at_once_while_redis_is_frozen(horde: HordeProcesses) -> None:
    native = f"{horde.native}/api/v2/generate/chat"
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Asking a frozen Redis."}], "max_tokens": 16}
    with horde.services.redis.frozen():
        asked = time.monotonic()
        answer = call("POST", f"{native}/async", body, KEYS.demo)
        took = time.monotonic() - asked
    assert answer.status == 202, answer
    assert took < ACCEPTED_SECONDS
    request = answer.body["id"]
    wait_until(lambda: call("GET", f"{native}/status/{request}").body["state"] == "done", 60, "it is not answered")
    horde.require_sound(60)
