"""The worker as a process, between a scripted horde and a scripted backend."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.support.scripted_backend import ScriptedBackend, running_backend
from tests.tools.chat_worker_example.scripted_horde import LOST, ScriptedHorde
from tests.tools.chat_worker_example.worker_process import WorkerProcess, running_worker

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


async def test_every_pop_carries_the_whole_declaration(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    await horde.give("hello")
    await horde.until(lambda: len(horde.pops) >= 2)
    for pop in horde.pops:
        assert pop.pop("pop_key")
        assert pop.pop("bridge_agent").startswith("HordeChatWorkerExample:")
    assert horde.pops[0] == horde.pops[1]
    assert horde.pops[0] == {
        "name": "Test worker",
        "models": ["scripted-model"],
        "model_id": "scripted-model",
        "chat_jobs": True,
        "prompt_jobs": False,
        "chat_features": [
            "json_object",
            "json_object_enforced",
            "json_schema",
            "json_schema_enforced",
            "prompt_overflow_refused",
            "tool_choice_auto_faithful",
            "tool_choice_enforced",
            "tools",
        ],
        "chat_limits": {"max_context_length": 8192, "max_length": 512},
        "image_transports": ["messages_url"],
        "max_context_length": 8192,
        "max_length": 512,
        "threads": 1,
        "wait": 20,
    }


async def test_a_job_is_answered_with_a_structured_reply(
    horde: ScriptedHorde, backend: ScriptedBackend, worker: WorkerProcess
) -> None:
    job_id = await horde.give("good morning", temperature=0.3, stop=["END"], seed=7)
    [submit] = await horde.submitted()
    assert submit == {
        "id": job_id,
        "state": "ok",
        "message": {"content": "good morning", "reasoning_content": None, "tool_calls": None},
        "finish_reason": "stop",
        "usage": submit["usage"],
    }
    assert set(submit["usage"]) == {"prompt_tokens", "completion_tokens"}
    asked = backend.requests[-1]
    assert (asked["temperature"], asked["stop"], asked["seed"], asked["max_tokens"]) == (0.3, ["END"], 7, 64)
    assert set(horde.keys) == {"worker-owner-key-00001"}


async def test_reasoning_and_tool_calls_reach_the_horde(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    await horde.give("[[tool_call]][[reasoning=let me see]]", tools=[WEATHER], tool_choice="auto")
    [submit] = await horde.submitted()
    function = {"name": "get_weather", "arguments": '{"city":""}'}
    assert submit["message"] == {
        "content": None,
        "reasoning_content": "let me see",
        "tool_calls": [{"id": "call_get_weather", "type": "function", "function": function}],
    }
    assert submit["finish_reason"] == "tool_calls"


async def test_a_conversation_that_does_not_fit_is_faulted_and_never_generated(
    horde: ScriptedHorde, backend: ScriptedBackend, worker: WorkerProcess
) -> None:
    fitting = await horde.give("[[say=done]]" + "word " * 3500)
    too_long = await horde.give("[[say=done]]" + "word " * 4500)
    first, second = await horde.submitted(2)
    assert (first["id"], first["state"]) == (fitting, "ok")
    assert second == {"id": too_long, "state": "faulted", "fault": "prompt_overflow"}
    assert backend.requests[-1]["messages"][0]["content"] == "[[say=done]]" + "word " * 3500


async def test_room_for_the_reply_counts_towards_the_fit(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    await horde.give("[[say=done]]" + "word " * 3500, max_tokens=500)
    await horde.give("[[say=done]]" + "word " * 3500, max_tokens=5000)
    first, second = await horde.submitted(2)
    assert (first["state"], second.get("fault")) == ("ok", "prompt_overflow")


@pytest.mark.parametrize(
    ("marker", "ttl", "fault"),
    [
        ("status=500", 60, "backend_error"),
        ("malformed", 60, "backend_error"),
        ("drop", 60, "backend_error"),
        ("hang", 0.5, "timeout"),
    ],
)
async def test_a_failing_backend_faults_the_job_and_the_worker_goes_on(
    horde: ScriptedHorde, worker: WorkerProcess, marker: str, ttl: float, fault: str
) -> None:
    failed = await horde.give(f"[[{marker}]]", ttl=ttl)
    answered = await horde.give("and now?")
    first, second = await horde.submitted(2)
    assert first == {"id": failed, "state": "faulted", "fault": fault}
    assert (second["id"], second["state"]) == (answered, "ok")


async def test_no_job_is_popped_while_the_backend_is_down(
    horde: ScriptedHorde, environment: dict[str, str], unused_port: int
) -> None:
    address = {
        **environment,
        "BACKEND_URL": f"http://127.0.0.1:{unused_port}",
        "BACKEND_PATIENCE_SECONDS": "0",
    }
    async with running_worker(**address) as worker:
        async with running_backend(port=unused_port):
            await worker.event("declared")
        await horde.give("lost with the backend")
        await horde.submitted()
        await worker.event("backend_waiting", len(worker.events("backend_waiting")) + 2)
        pops = len(horde.pops)
        answered = await horde.give("kept for later")
        await worker.event("backend_waiting", len(worker.events("backend_waiting")) + 1)
        assert len(horde.pops) == pops
        async with running_backend(port=unused_port):
            submits = await horde.submitted(2)
            assert (submits[1]["id"], submits[1]["state"]) == (answered, "ok")


@pytest.mark.parametrize("marker", ["status=400", "status=429", "malformed"])
async def test_a_backend_that_answers_is_not_held_to_be_down_for_a_bad_job(
    horde: ScriptedHorde, worker: WorkerProcess, marker: str
) -> None:
    for _ in range(6):
        await horde.give(f"[[{marker}]]poison")
    answered = await horde.give("innocent")
    submits = await horde.submitted(7)
    assert (submits[-1]["id"], submits[-1]["state"]) == (answered, "ok")
    assert worker.events("backend_waiting") == []


async def test_a_job_waits_for_a_backend_that_is_restarted(
    horde: ScriptedHorde, environment: dict[str, str], unused_port: int
) -> None:
    async with running_worker(**environment | {"BACKEND_URL": f"http://127.0.0.1:{unused_port}"}) as worker:
        async with running_backend(port=unused_port):
            await worker.event("declared")
        answered = await horde.give("kept over the restart")
        await worker.event("job_popped")
        async with running_backend(port=unused_port):
            [submit] = await horde.submitted()
            assert (submit["id"], submit["state"]) == (answered, "ok")


async def test_a_lost_pop_answer_is_asked_for_again_with_the_same_key(
    horde: ScriptedHorde, worker: WorkerProcess
) -> None:
    horde.pop_script.append(LOST)
    job_id = await horde.give("only once")
    [submit] = await horde.submitted()
    assert submit["id"] == job_id
    await horde.until(lambda: len(horde.pops) >= 3)
    first, repeated, fresh = (pop["pop_key"] for pop in horde.pops[:3])
    assert first == repeated != fresh


@pytest.mark.parametrize("trouble", [LOST, (503, {}), (429, {"message": "slow down"}), (408, {})])
async def test_a_submit_without_a_final_answer_is_repeated(
    horde: ScriptedHorde, worker: WorkerProcess, trouble: tuple[int, dict[str, str]]
) -> None:
    horde.submit_script.extend([trouble, trouble])
    await horde.give("keep this")
    first, second, third = await horde.submitted(3)
    assert first == second == third
    assert (await worker.event("job_done"))["submit"] == 200


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ((202, {}), "job_done"),
        ((400, {"rc": "ChatReplyRefused", "message": "no"}), "job_refused"),
        ((404, {}), "job_refused"),
    ],
)
async def test_a_final_answer_to_a_submit_ends_it(
    horde: ScriptedHorde, worker: WorkerProcess, answer: tuple[int, dict[str, str]], end: str
) -> None:
    horde.submit_script.append(answer)
    first = await horde.give("one")
    second = await horde.give("two")
    submits = await horde.submitted(2)
    assert [submit["id"] for submit in submits] == [first, second]
    await worker.event(end)
    assert worker.events(end)[0]["id"] == first


async def test_a_reply_that_cannot_be_delivered_before_the_end_is_owned_up_to(
    horde: ScriptedHorde, environment: dict[str, str]
) -> None:
    async with running_worker(**environment, STOP_GRACE_SECONDS="0") as worker:
        horde.submit_script.extend([(503, {})] * 100)
        await horde.give("nobody takes this")
        await horde.submitted()
        worker.signal(signal.SIGTERM)
        assert await worker.exit_code() == 0
        assert worker.events("job_lost")
        assert worker.events("stopped")[0]["failed"] == 1


async def test_threads_answer_jobs_at_the_same_time(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    async with running_worker(**environment, WORKER_THREADS="3") as worker:
        for _ in range(3):
            await horde.give("[[hang]]")
        await worker.event("job_popped", 3)
    assert horde.submits == []
    assert [pop["threads"] for pop in horde.pops] == [3, 3, 3]


async def test_sigterm_faults_running_jobs_after_the_grace_and_exits_cleanly(
    horde: ScriptedHorde, environment: dict[str, str]
) -> None:
    async with running_worker(**environment, STOP_GRACE_SECONDS="0.2") as worker:
        job_id = await horde.give("[[hang]]")
        await worker.event("job_popped")
        worker.signal(signal.SIGTERM)
        assert await worker.exit_code() == 0
    assert horde.submits == [{"id": job_id, "state": "faulted", "fault": "shutdown"}]
    assert len(horde.pops) == 1


async def test_a_job_that_ends_within_the_grace_is_still_delivered(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    await horde.give("[[delay=0.5]]nearly done")
    await worker.event("job_popped")
    worker.signal(signal.SIGINT)
    assert await worker.exit_code() == 0
    [submit] = horde.submits
    assert (submit["state"], submit["message"]["content"]) == ("ok", "nearly done")


async def test_a_second_signal_ends_the_grace(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    await horde.give("[[hang]]")
    await worker.event("job_popped")
    worker.signal(signal.SIGTERM)
    await worker.event("stopping")
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    assert [submit["fault"] for submit in horde.submits] == ["shutdown"]


async def test_a_worker_without_jobs_stops_at_once(worker: WorkerProcess, horde: ScriptedHorde) -> None:
    await horde.until(lambda: bool(horde.pops))
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    assert horde.submits == []


@pytest.mark.parametrize(
    "answer",
    [
        (401, {"rc": "InvalidAPIKey", "message": "No user with this key"}),
        (403, {"rc": "AnonForbiddenWorker", "message": "Anonymous cannot run workers"}),
        (403, {"rc": "WrongCredentials", "message": "This name belongs to another account"}),
    ],
)
async def test_a_refusal_that_only_the_operator_can_cure_stops_the_worker(
    horde: ScriptedHorde, environment: dict[str, str], answer: tuple[int, dict[str, str]]
) -> None:
    horde.pop_script.append(answer)
    async with running_worker(**environment, WORKER_THREADS="2") as worker:
        assert await worker.exit_code() == 2
        complaint = await worker.stderr()
    assert answer[1]["message"] in complaint
    assert "HORDE_API_KEY" in complaint


async def test_maintenance_is_said_clearly_and_waited_out(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    horde.pop_script.append((403, {"rc": "WorkerMaintenance", "message": "Back on Monday"}))
    said = await worker.event("maintenance")
    assert said["message"] == "Back on Monday"
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    assert len(horde.pops) == 1


async def test_empty_pops_that_were_not_held_are_spaced_out(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    async with running_worker(**environment, POP_WAIT_SECONDS="0"):
        await horde.until(lambda: bool(horde.pops))
        started = asyncio.get_running_loop().time()
        await horde.until(lambda: len(horde.pops) >= 3)
        assert asyncio.get_running_loop().time() - started >= 1.0


async def test_a_worker_that_starts_first_waits_for_its_backend(
    horde: ScriptedHorde, environment: dict[str, str], unused_port: int
) -> None:
    address = {**environment, "BACKEND_URL": f"http://127.0.0.1:{unused_port}"}
    async with running_worker(**address) as worker:
        await worker.event("backend_waiting")
        assert horde.pops == []
        async with running_backend(port=unused_port):
            await horde.give("are you there?")
            [submit] = await horde.submitted()
        assert submit["state"] == "ok"


async def test_the_health_file_follows_the_worker(
    horde: ScriptedHorde, environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "health.json"
    async with running_worker(**environment, HEALTH_FILE=str(path)) as worker:
        await horde.until(lambda: bool(horde.pops))
        assert json.loads(path.read_text())["state"] == "ready"
        worker.signal(signal.SIGTERM)
        assert await worker.exit_code() == 0
    assert not path.exists()


async def test_the_log_holds_no_prompt_reply_or_key(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    async with running_worker(**environment, BACKEND_API_KEY="backend-key-0001") as worker:
        await horde.give("confidential question [[say=confidential answer]]")
        await horde.give("confidential failure [[status=500]]")
        await worker.event("job_faulted")
        worker.signal(signal.SIGTERM)
        assert await worker.exit_code() == 0
        complaints = await worker.stderr()
    log = "".join(worker.lines) + complaints
    assert "job_done" in log
    for secret in ("confidential", environment["HORDE_API_KEY"], "backend-key-0001"):
        assert secret not in log


async def test_bad_configuration_names_every_problem_and_exits_with_2() -> None:
    async with running_worker(HORDE_URL="ftp://x", WORKER_THREADS="none", MODEL_NAME="m") as worker:
        assert await worker.exit_code() == 2
        complaint = await worker.stderr()
    for variable in ("HORDE_URL", "HORDE_API_KEY", "BACKEND_URL", "WORKER_NAME", "WORKER_THREADS"):
        assert variable in complaint
    assert "MODEL_NAME" not in complaint


async def test_replies_too_long_for_the_context_are_a_configuration_problem(
    horde: ScriptedHorde, environment: dict[str, str]
) -> None:
    async with running_worker(**environment, MAX_LENGTH="9000") as worker:
        assert await worker.exit_code() == 2
        assert "MAX_LENGTH" in await worker.stderr()
    assert horde.pops == []
