"""Backends that misbehave, one by one: the horde gets a right reply, or a fault with the right code."""

import json
from typing import Any

import pytest

from tests.support.scripted_backend import BackendShape, running_backend
from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde
from tests.tools.chat_worker_example.worker_process import WorkerProcess, running_worker

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@STREAMS
@pytest.mark.parametrize(
    ("marker", "ttl", "fault"),
    [
        ("hang", 1, "timeout"),
        ("loris", 1, "timeout"),
        ("status=500", 60, "backend_error"),
        ("status=503", 60, "backend_error"),
        ("drop", 60, "backend_error"),
        ("malformed", 60, "backend_error"),
        ("bad_utf8", 60, "backend_error"),
        ("flood", 60, "backend_error"),
    ],
)
async def test_what_is_no_right_reply_is_a_fault(
    horde: ScriptedHorde, worker: WorkerProcess, marker: str, ttl: float, fault: str, stream: bool
) -> None:
    failed = await horde.give(f"[[{marker}]]an answer", ttl=ttl, stream=stream)
    answered = await horde.give("and now?", stream=stream)
    first, second = await horde.submitted(2)
    assert first == {"id": failed, "state": "faulted", "fault": fault}
    assert (second["id"], second["message"]["content"]) == (answered, "and now?")


@pytest.mark.parametrize("marker", ["cut", "quit"])
async def test_a_stream_that_breaks_off_is_a_fault_and_never_a_short_reply(
    horde: ScriptedHorde, worker: WorkerProcess, marker: str
) -> None:
    failed = await horde.give(f"[[{marker}]]one two three four five six", stream=True)
    [submit] = await horde.submitted()
    assert submit == {"id": failed, "state": "faulted", "fault": "backend_error"}


async def test_a_stream_that_drips_for_ever_is_a_fault_in_time(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    failed = await horde.give("[[pace=0.3]]" + "drop after drop " * 20, ttl=2, stream=True)
    [submit] = await horde.submitted()
    assert submit == {"id": failed, "state": "faulted", "fault": "timeout"}


@STREAMS
async def test_a_wrong_usage_is_left_out_of_a_right_reply(
    horde: ScriptedHorde, worker: WorkerProcess, stream: bool
) -> None:
    await horde.give("[[wrong_usage]]right all the same", stream=stream)
    [submit] = await horde.submitted()
    assert submit["message"]["content"] == "right all the same"
    assert submit["usage"] is None


@pytest.mark.parametrize(
    ("marker", "calls"), [("twin_ids", 2), ("object_arguments", 1), ("twin_ids]][[object_arguments", 2)]
)
async def test_calls_in_a_wrong_shape_are_put_right(
    horde: ScriptedHorde, worker: WorkerProcess, marker: str, calls: int
) -> None:
    await horde.give(f"[[tool_call]][[{marker}]]", tools=[TOOL], tool_choice="auto")
    [submit] = await horde.submitted()
    made = submit["message"]["tool_calls"]
    assert [json.loads(call["function"]["arguments"]) for call in made] == [{"city": ""}] * calls
    assert len({call["id"] for call in made}) == calls


@pytest.mark.parametrize(
    ("marker", "payload"),
    [
        ("unknown_function", {"tools": [TOOL], "tool_choice": "auto"}),
        ("not_json", {"response_format": {"type": "json_object"}}),
    ],
)
async def test_what_the_horde_would_refuse_is_a_fault(
    horde: ScriptedHorde, worker: WorkerProcess, marker: str, payload: dict[str, Any]
) -> None:
    failed = await horde.give(f"[[{marker}]]", **payload)
    [submit] = await horde.submitted()
    assert submit == {"id": failed, "state": "faulted", "fault": "backend_error"}


async def test_a_backend_that_trims_in_silence_serves_no_strict_requests(
    horde: ScriptedHorde, environment: dict[str, str]
) -> None:
    shape = BackendShape(llama_cpp=False, context=2048, trims_to=2047)
    async with running_backend(shape) as trimmer:
        settings = environment | {"BACKEND_URL": trimmer.url, "MAX_CONTEXT_LENGTH": "8192"}
        async with running_worker(**settings) as worker:
            declared = await worker.event("declared")
            await horde.until(lambda: bool(horde.pops))
    assert "2047" in declared["withheld"]["prompt_overflow_refused"]
    assert "prompt_overflow_refused" not in horde.pops[0]["chat_features"]
