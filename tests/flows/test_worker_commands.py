"""The example worker's commands and its live view, on a real horde."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.hand_worker import HandWorker
from tests.support.horde import KEYS, HordeProcesses
from tests.support.scripted_backend import BackendShape, ScriptedBackend, running_backend
from tests.support.services import wait_until
from tests.tools.chat_worker_example.worker_process import WorkerProcess, run_command, running_worker


@dataclass
class Volunteer:
    """A model of this test's own, its backend, and the settings of the worker that serves it."""

    horde: HordeProcesses
    backend: ScriptedBackend
    settings: dict[str, str]

    @property
    def model(self) -> str:
        """The model's name."""
        return self.settings["MODEL_NAME"]

    async def online(self) -> None:
        """Waits until the horde offers the model."""
        await asyncio.to_thread(wait_until, self._is_offered, 30, "the worker does not come online")

    def _is_offered(self) -> bool:
        offered = self.horde.call("GET", "/api/v2/generate/chat/models").body
        return json.dumps(self.model) in json.dumps(offered)

    async def ask(self, text: str) -> dict[str, Any]:
        """Submits a request with the demo key; what the horde answers."""
        body = {"model": self.model, "messages": [{"role": "user", "content": text}], "max_tokens": 16}
        answer = await asyncio.to_thread(self.horde.call, "POST", "/api/v2/generate/chat/async", KEYS.demo, body)
        assert answer.status == 202, answer
        return dict(answer.body)


@pytest.fixture
async def volunteer(horde: HordeProcesses) -> AsyncIterator[Volunteer]:
    model = f"own-{uuid4().hex[:8]}"
    async with running_backend(BackendShape(model=model)) as backend:
        settings = {
            "HORDE_URL": horde.front,
            "HORDE_API_KEY": KEYS.worker,
            "BACKEND_URL": backend.url,
            "MODEL_NAME": model,
            "WORKER_NAME": f"of {model}",
        }
        yield Volunteer(horde, backend, settings)


async def reward_of(worker: WorkerProcess) -> float:
    """The reward of the worker's first job."""
    return float((await worker.event("job_done"))["reward"])


async def test_a_request_of_ones_own_is_answered_by_ones_own_worker(volunteer: Volunteer) -> None:
    async with running_worker(**volunteer.settings) as worker:
        await volunteer.online()
        volunteer.backend.plan({"say": "Good day \N{WAVING HAND SIGN}"})
        code, printed = await run_command("test", **volunteer.settings, PYTHONIOENCODING="cp1252")
        assert await reward_of(worker) > 0
    asked, answered, text = printed.splitlines()
    assert code == 0
    assert f"for {volunteer.model}, at most" in asked
    assert answered.startswith(f"of {volunteer.model} answered for ")
    assert text == "Good day ?"


async def test_a_request_of_ones_own_that_fails_says_why(volunteer: Volunteer) -> None:
    async with running_worker(**volunteer.settings):
        await volunteer.online()
        volunteer.backend.plan({"malformed": ""}, times=None)
        code, printed = await run_command("test", **volunteer.settings)
    assert code == 1
    assert printed.splitlines()[-1].startswith("No reply: ")


async def test_a_request_of_ones_own_is_cancelled_with_its_command(volunteer: Volunteer) -> None:
    async with running_worker(**volunteer.settings) as worker:
        await volunteer.online()
        volunteer.backend.plan({"hang": ""}, times=None)
        async with running_worker("test", **volunteer.settings, PYTHONUNBUFFERED="1") as command:
            await command.printed("Request ")
            await worker.event("job_popped")
            command.signal(signal.SIGINT)
            assert await command.exit_code() == 130
            assert await command.stderr() == ""
    request_id = command.lines[0].split()[1]
    [(state,)] = volunteer.horde.query("SELECT state FROM horde_requests WHERE id = :id", id=request_id)
    assert state == "cancelled"


async def test_an_account_with_many_workers_is_asked_for_those_that_serve_the_model(volunteer: Volunteer) -> None:
    for number in range(7):
        HandWorker(volunteer.horde, f"{volunteer.model}-{number}").pop()
    code, printed = await run_command("test", **volunteer.settings)
    assert (code, printed.startswith("None of the ")) == (1, True), printed
    async with running_worker(**volunteer.settings):
        await volunteer.online()
        code, printed = await run_command("test", **volunteer.settings)
    assert (code, printed.splitlines()[-1]) == (0, "Say hello in one short sentence.")


async def test_an_account_without_a_worker_is_told_so(volunteer: Volunteer) -> None:
    code, printed = await run_command("test", **volunteer.settings | {"HORDE_API_KEY": KEYS.demo})
    assert (code, printed) == (1, "This account has no worker yet. Start one, and test it then.\n")


async def test_a_wrong_key_is_told_so(volunteer: Volunteer) -> None:
    settings = volunteer.settings | {"HORDE_API_KEY": "no-such-key-of-22-char"}
    for command, said in (("test", "The horde refuses: "), ("earnings", "The horde does not tell: ")):
        code, printed = await run_command(command, **settings)
        assert (code, printed.startswith(said)) == (1, True), printed


async def printed_once(holds: Callable[[str], bool], command: str, **settings: str) -> str:
    """What a command prints, once that is as hoped: the horde counts by tasks."""
    async with asyncio.timeout(30):
        while True:
            code, printed = await run_command(command, **settings)
            assert code == 0, printed
            if holds(printed):
                return printed


def told(printed: str) -> dict[str, float]:
    """The numbers in the earnings, by what each is about."""
    lines = (line.rpartition(": ") for line in printed.splitlines()[1:])
    return {name.strip(): float(value) for name, _, value in lines}


async def test_earnings_count_a_job_that_was_served(volunteer: Volunteer) -> None:
    async with running_worker(**volunteer.settings) as worker:
        await volunteer.online()
        _, printed = await run_command("earnings", **volunteer.settings)
        before = told(printed)
        await volunteer.ask("How much is it worth?")
        assert await reward_of(worker) > 0

        def counted(printed: str) -> bool:
            return told(printed)["jobs served"] > before["jobs served"]

        printed = await printed_once(counted, "earnings", **volunteer.settings)
    # What other tests earned and spent is settled meanwhile, so only the names are certain.
    assert set(told(printed)) >= {"earned by its workers, less its own requests", "jobs served", "workers"}
    assert told(printed)["workers"] >= 1


async def test_why_names_what_a_waiting_request_wants(volunteer: Volunteer) -> None:
    async with running_worker(**volunteer.settings) as worker:
        await volunteer.online()
        worker.signal()
        assert await worker.exit_code() == 0
    waiting = await volunteer.ask("Anybody?")
    another = volunteer.settings | {"MODEL_NAME": "another"}
    wanted = "waiting ask for a model that you do not serve"
    assert await printed_once(lambda printed: wanted in printed, "why", **another)
    volunteer.horde.call("DELETE", f"/api/v2/generate/chat/status/{waiting['id']}", KEYS.demo)


async def test_in_quiet_hours_the_horde_gives_the_worker_nothing(volunteer: Volunteer) -> None:
    async with running_worker(**volunteer.settings) as worker:
        await volunteer.online()
        worker.signal()
        assert await worker.exit_code() == 0
    async with running_worker(**volunteer.settings, QUIET_HOURS="00:00-12:00,12:00-00:00") as worker:
        await worker.event("resting")
        waiting = await volunteer.ask("Is anybody awake?")
        code, _ = await run_command("why", **volunteer.settings | {"WORKER_NAME": f"another of {volunteer.model}"})
        assert code == 0
        assert worker.events("job_popped") == []
    status = volunteer.horde.call("GET", f"/api/v2/generate/chat/status/{waiting['id']}", KEYS.demo).body
    [generation] = status["generations"]
    assert generation["worker_name"] == f"another of {volunteer.model}"


async def test_the_view_shows_a_job_with_its_tokens_and_kudos(volunteer: Volunteer, tmp_path: Path) -> None:
    log = tmp_path / "log"
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120", "LINES": "40", "LOG_FILE": str(log)}

    def ended() -> list[dict[str, Any]]:
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [event for event in events if event["event"] == "job_done"]

    async with running_worker("--view", **volunteer.settings, **terminal) as worker:
        await volunteer.online()
        await volunteer.ask("Look at this.")
        await asyncio.to_thread(wait_until, lambda: bool(ended()), 30, "the job does not end")
        worker.signal()
        assert await worker.exit_code() == 0
    [job] = ended()
    picture = "".join(worker.lines)
    for part in (f"of {volunteer.model}", volunteer.model, "1 done", f"{job['reward']:.2f} kudos", job["id"][:8]):
        assert part in picture
    assert f"{job['usage']['completion_tokens'] / 60:.1f} tokens/s" in picture
