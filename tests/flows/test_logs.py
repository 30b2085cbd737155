"""The logs of all processes: JSON lines that follow a request, and nothing that was said (operations O4)."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import wait_until

OURS = ("front", "web", "verdict", "tasks", "media", "beat", "worker")
"""Everything but the backend, which is no part of the horde."""

NOISY = ("front", "web", "verdict", "tasks")


@pytest.fixture
def talkative(horde: HordeProcesses) -> Iterator[HordeProcesses]:
    """The horde with everything logged that can be."""
    for name in NOISY:
        horde.restart(name, HORDE_LOG_LEVEL="DEBUG")
    horde.wait_ready()
    yield horde
    for name in NOISY:
        horde.restart(name)
    horde.wait_ready()


def lines(folder: Path, process: str) -> list[dict[str, Any]]:
    """The events of one process. Raises ValueError for a line that is none."""
    text = (folder / f"{process}.log").read_text(errors="replace")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def events(horde: HordeProcesses, process: str, event: str, **fields: str) -> list[dict[str, Any]]:
    """The events of this name whose fields hold these values, alone or among others."""
    return [
        line
        for line in lines(horde.folder, process)
        if line.get("event") == event
        and all(wanted == line.get(name) or wanted in (line.get(name) or ()) for name, wanted in fields.items())
    ]


def asked(horde: HordeProcesses, content: str, call_id: str, **fields: object) -> str:
    """Ask as a program without an SDK does; returns the id of the request."""
    status, text = post(horde, content, call_id, **fields)
    assert status == 200, text
    first = text.removeprefix("data: ").splitlines()[0] if fields.get("stream") else text
    return str(json.loads(first)["id"]).removeprefix("chatcmpl-")


def post(horde: HordeProcesses, content: str, call_id: str, **fields: object) -> tuple[int, str]:
    """Status and text of a chat call with an id of the client's."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 64} | fields
    headers = {"Authorization": f"Bearer {KEYS.demo}", "X-Request-Id": call_id, "Content-Type": "application/json"}
    url = f"{horde.front}/v1/chat/completions"
    call = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(call, timeout=60) as answer:  # noqa: S310 - see above
            assert answer.headers["x-request-id"] == call_id
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def booked(horde: HordeProcesses, request_id: str) -> bool:
    """Whether settlement has said that it booked a request."""
    return bool(events(horde, "tasks", "generations.settled", request_ids=request_id))


@pytest.mark.slow
def test_nothing_that_was_said_and_no_key_is_in_any_log(talkative: HordeProcesses) -> None:
    said = ("marked-question-7f3a", "marked-answer-7f3a", "marked-thought-7f3a", "marked-failure-7f3a")
    answer = f"{said[0]} [[say={said[1]}]][[reasoning={said[2]}]]"
    ids = [asked(talkative, answer, "logged-plain"), asked(talkative, answer, "logged-stream", stream=True)]
    assert post(talkative, f"{said[3]} [[status=500]]", "logged-failure")[0] >= 500
    for request_id in ids:
        wait_until(partial(booked, talkative, request_id), 30, f"{request_id} is not booked")
    secrets = (
        *said,
        KEYS.demo,
        KEYS.worker,
        KEYS.admin,
        KEYS.service_passkey,
        talkative.services.s3_secret_key,
        # The passwords of PostgreSQL and Redis, as they stand in their URLs.
        f":{urlsplit(talkative.services.database_url).password}@",
        f":{urlsplit(talkative.services.redis_url).password}@",
        "X-Amz-",
    )
    for path in talkative.folder.glob("*.log"):
        if path.stem != "backend":
            log = path.read_text(errors="replace")
            assert [secret for secret in secrets if secret in log] == [], path.stem


def test_a_request_can_be_followed_from_the_clients_id_to_the_workers_log(horde: HordeProcesses) -> None:
    request_id = asked(horde, "Follow me.", "followed-1")

    def one(process: str, event: str, **fields: str) -> dict[str, Any]:
        wait_until(lambda: bool(events(horde, process, event, **fields)), 30, f"{process} logs no {event} {fields}")
        return events(horde, process, event, **fields)[0]

    assert one("front", "request", call_id="followed-1")["status"] == 200
    assert one("web", "request.accepted", call_id="followed-1")["request_id"] == request_id
    generation_id = one("web", "generation.leased", request_id=request_id)["generation_id"]
    submit = one("web", "reply.stored", request_id=request_id)
    verdict = one("verdict", "generation.verified", request_id=request_id)
    assert verdict["generation_id"] == generation_id
    assert verdict["call_id"] == submit["call_id"]
    assert one("tasks", "generations.settled", request_ids=request_id)["count"] >= 1
    assert one("worker", "job_done", id=generation_id)["submit"] == 200


def test_the_death_of_a_child_is_an_event_too(horde: HordeProcesses) -> None:
    (child,) = psutil.Process(horde.running["verdict"].pid).children()
    child.kill()

    def told() -> bool:
        return any(f"pid:{child.pid} exited" in line["event"] for line in lines(horde.folder, "verdict"))

    wait_until(told, 30, "nothing says that the child died")


@pytest.mark.parametrize("process", OURS)
def test_every_line_of_a_log_is_one_event(horde: HordeProcesses, process: str) -> None:
    found = lines(horde.folder, process)
    assert found or process == "media"
    assert [line for line in found if "event" not in line] == []
