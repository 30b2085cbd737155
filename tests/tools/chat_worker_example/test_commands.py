"""The commands: check, why, test and earnings, and the live view."""

import json
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.scripted_backend import BackendShape, ScriptedBackend, running_backend
from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde, running_horde
from tests.tools.chat_worker_example.worker_process import run_command, running_worker
from tools.chat_worker_example.board import Board
from tools.chat_worker_example.commands import REASONS, accounted
from tools.chat_worker_example.events import Event
from tools.chat_worker_example.view import picture


async def test_check_prints_the_contract_and_each_name_with_its_reason(backend: ScriptedBackend) -> None:
    code, printed = await run_command("check", BACKEND_URL=backend.url, MODEL_NAME="m")
    assert code == 0
    for line in ("holds    chat", "holds    stream in pieces", "refused  beyond the context"):
        assert line in printed
    assert "yes      prompt_overflow_refused    its counter says" in printed
    assert "no       images" in printed


async def test_check_fails_for_a_backend_that_breaks_its_streams() -> None:
    async with running_backend() as backend:
        backend.plan({"quit": ""}, times=None)
        code, printed = await run_command("check", BACKEND_URL=backend.url, MODEL_NAME="m")
    assert code == 1
    assert "BROKEN   stream" in printed


async def test_check_fails_when_strict_requests_cannot_be_served() -> None:
    async with running_backend(BackendShape(reports_usage=False)) as backend:
        code, printed = await run_command("check", BACKEND_URL=backend.url, MODEL_NAME="m")
    assert code == 1
    assert "no       prompt_overflow_refused" in printed


async def test_check_says_when_a_backend_is_away() -> None:
    assert await run_command("check", BACKEND_URL="http://127.0.0.1:9", MODEL_NAME="m") == (
        1,
        "The backend gives no answer: /v1/models cannot be reached: ClientConnectorError\n",
    )


async def test_why_tells_what_waits_and_why_it_is_not_given(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    horde.skipped = {"max_context_length": 2, "images": 7, "models": 1}
    code, printed = await run_command("why", **environment)
    assert code == 0
    first, second, third = printed.splitlines()
    assert first.split() == ["7", "waiting", *first.split()[2:]]
    assert "require images, which you do not declare (" in first
    assert REASONS["max_context_length"] in second
    assert REASONS["models"] in third


async def test_why_answers_the_job_that_it_gets(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    job_id = await horde.give("just in time")
    code, printed = await run_command("why", **environment)
    assert code == 0
    assert "There is a job" in printed
    assert [(submit["id"], submit["state"]) for submit in horde.submits] == [(job_id, "ok")]


async def test_why_passes_the_hordes_refusal_on(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    horde.pop_script.append((403, {"rc": "WorkerMaintenance", "message": "Back on Monday"}))
    code, printed = await run_command("why", **environment)
    assert (code, printed) == (1, "The horde refuses this worker: Back on Monday (WorkerMaintenance)\n")


def test_earnings_are_told_line_by_line() -> None:
    account = {
        "username": "Ann#3",
        "kudos": 12.5,
        "kudos_details": {"accumulated": 10.5},
        "records": {"fulfillment": {"text": 4}},
        "worker_count": 1,
        "evaluating_kudos": 5.25,
    }
    assert accounted(account) == [
        "Ann#3: 12.5 kudos to spend",
        "  earned by its workers, less its own requests: 10.5",
        "  jobs served: 4",
        "  workers: 1",
        "  waiting until the account is trusted: 5.25",
    ]


async def test_a_horde_with_a_certificate_of_its_own_is_served_when_it_is_trusted(
    environment: dict[str, str], tmp_path: Path
) -> None:
    certificate, key = tmp_path / "ca.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-out", certificate, "-keyout", key], check=True, capture_output=True)  # noqa: ASYNC221
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    async with running_horde(tls) as horde:
        async with running_worker(**environment | {"HORDE_URL": horde.url}) as worker:
            assert "Certificate" in (await worker.event("pop_failed"))["reason"]
        async with running_worker(**environment | {"HORDE_URL": horde.url, "CA_FILE": str(certificate)}):
            await horde.give("over TLS")
            [submit] = await horde.submitted()
    assert submit["state"] == "ok"


async def test_a_log_file_takes_the_log(horde: ScriptedHorde, environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    async with running_worker(**environment, LOG_FILE=str(log)) as worker:
        await horde.give("hello")
        await horde.submitted()
        worker.signal()
        assert await worker.exit_code() == 0
        assert worker.lines == []
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events[0] == "starting"
    assert {"declared", "job_popped", "job_done", "stopped"} <= set(events)


@pytest.mark.parametrize("where", ["LOG_FILE", "HEALTH_FILE"])
async def test_a_disk_that_takes_nothing_costs_no_job(
    horde: ScriptedHorde, environment: dict[str, str], tmp_path: Path, where: str
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    place = "/dev/full" if where == "LOG_FILE" else str(folder / "health")
    async with running_worker(**environment, **{where: place}) as worker:
        await horde.until(lambda: bool(horde.pops))
        shutil.rmtree(folder)
        await horde.give("hello")
        await horde.give("and again")
        submits = await horde.submitted(2)
        worker.signal()
        assert await worker.exit_code() == 0, await worker.stderr()
    assert [submit["state"] for submit in submits] == ["ok", "ok"]
    if where == "HEALTH_FILE":
        assert [event["reason"] for event in worker.events("health_file_failed")] == ["FileNotFoundError"]


def board_after(*events: dict[str, Any]) -> Board:
    board = Board()
    for at, event in enumerate(events):
        record: Event = {"time": 100.0 + at, **event}
        board.take(record)
    return board


DAY = (
    {"event": "starting", "worker": "Attic"},
    {"event": "declared", "model": "m-8b"},
    {"event": "job_popped", "id": "job-one"},
    {"event": "job_popped", "id": "job-two"},
    {"event": "job_done", "id": "job-one", "reward": 2.5, "usage": {"completion_tokens": 120}, "seconds": 2},
    {"event": "job_faulted", "id": "job-three", "fault": "timeout", "reward": 0},
)


def test_the_board_follows_the_log() -> None:
    board = board_after(*DAY)
    assert (board.worker, board.model, board.kudos) == ("Attic", "m-8b", 2.5)
    assert list(board.running) == ["job-two"]
    assert board.ended == {"job_done": 1, "job_faulted": 1}
    assert board.tokens_per_second(110) == 2
    assert board.tokens_per_second(200) == 0


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ({"event": "resting", "reason": "quiet hours"}, "resting: quiet hours"),
        ({"event": "maintenance", "message": "Back on Monday"}, "maintenance: Back on Monday"),
        ({"event": "submit_failed", "reason": "status 503"}, "working"),
    ],
)
def test_the_board_says_what_the_worker_does(event: dict[str, Any], state: str) -> None:
    assert board_after(*DAY, event).state == state


def test_the_view_shows_jobs_speed_and_kudos() -> None:
    console = Console(width=100, file=None, record=True, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(picture(board_after(*DAY), now=110))
    shown = captured.get()
    for part in ("Attic", "m-8b", "2.50 kudos", "2.0 tokens/s", "1 running", "job-two", "timeout"):
        assert part in shown
