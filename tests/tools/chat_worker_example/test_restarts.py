"""A backend that goes away and comes back, as it was or as another, while the worker runs."""

from typing import Any

import aiohttp
import pytest

from tests.support.scripted_backend import BackendShape, running_backend
from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde
from tests.tools.chat_worker_example.worker_process import running_worker
from tools.chat_worker_example.backend import BackendError
from tools.chat_worker_example.backends import LlamaCpp
from tools.chat_worker_example.probe import Prober

Events = list[dict[str, Any]]


async def restarted_as(
    shape: BackendShape, horde: ScriptedHorde, environment: dict[str, str], port: int
) -> tuple[Events, Events]:
    """The declarations of a worker whose backend comes back so, and the submits of a job before and one after."""
    address = environment | {"BACKEND_URL": f"http://127.0.0.1:{port}", "BACKEND_PATIENCE_SECONDS": "0"}
    async with running_worker(**address) as worker:
        async with running_backend(port=port):
            await worker.event("declared")
        await horde.give("lost with the backend")
        await horde.submitted()
        async with running_backend(shape, port=port):
            await horde.give("word " * 40)
            submits = await horde.submitted(2)
        return worker.events("declared"), submits


async def test_a_backend_that_comes_back_with_another_context_is_declared_anew(
    horde: ScriptedHorde, environment: dict[str, str], unused_port: int
) -> None:
    smaller = BackendShape(context=600)
    declared, submits = await restarted_as(smaller, horde, environment | {"MAX_LENGTH": "64"}, unused_port)
    assert submits[-1]["state"] == "ok"
    assert [each["max_context_length"] for each in declared] == [8192, 600]
    assert horde.pops[-1]["chat_limits"]["max_context_length"] == 600


async def test_a_backend_that_comes_back_as_it_was_is_not_probed_again(
    horde: ScriptedHorde, environment: dict[str, str], unused_port: int
) -> None:
    declared, submits = await restarted_as(BackendShape(), horde, environment, unused_port)
    assert submits[-1]["state"] == "ok"
    assert declared == [declared[0]]


async def test_a_backend_that_comes_back_as_one_that_cannot_be_declared_ends_the_worker(
    horde: ScriptedHorde, environment: dict[str, str], unused_port: int
) -> None:
    address = environment | {"BACKEND_URL": f"http://127.0.0.1:{unused_port}", "BACKEND_PATIENCE_SECONDS": "0"}
    async with running_worker(**address) as worker:
        async with running_backend(port=unused_port):
            await worker.event("declared")
        await horde.give("lost with the backend")
        await horde.submitted()
        async with running_backend(BackendShape(llama_cpp=False), port=unused_port):
            assert await worker.exit_code() == 2
        assert "MAX_CONTEXT_LENGTH" in await worker.stderr()


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        (BackendShape(model="some.gguf", context=1024), True),
        (BackendShape(model="another.gguf", context=1024), False),
        (BackendShape(model="some.gguf", context=2048), False),
        (BackendShape(model="some.gguf", llama_cpp=False), False),
    ],
    ids=["the same", "another model", "another context", "another kind"],
)
async def test_a_look_tells_whether_it_is_the_backend_that_was_probed(shape: BackendShape, found: bool) -> None:
    async with aiohttp.ClientSession() as session:
        async with running_backend(BackendShape(model="some.gguf", context=1024)) as first:
            findings = await Prober(LlamaCpp(session, first.url), "m").probe()
        async with running_backend(shape) as second:
            assert await Prober(LlamaCpp(session, second.url), "m").finds_again(findings) is found
        with pytest.raises(BackendError):
            await Prober(LlamaCpp(session, second.url), "m").finds_again(findings)


async def test_a_backend_that_never_told_its_context_is_not_taken_for_another() -> None:
    async with running_backend(BackendShape(llama_cpp=False)) as backend, aiohttp.ClientSession() as session:
        prober = Prober(LlamaCpp(session, backend.url), "m", claimed_context=8192)
        assert await prober.finds_again(await prober.probe())


async def test_a_backend_that_is_away_is_noticed_before_the_next_job_is_asked_for(
    horde: ScriptedHorde, environment: dict[str, str], unused_port: int
) -> None:
    address = environment | {"BACKEND_URL": f"http://127.0.0.1:{unused_port}", "POP_WAIT_SECONDS": "1"}
    async with running_worker(**address) as worker:
        async with running_backend(port=unused_port):
            await worker.event("declared")
        await worker.event("backend_waiting")
        await horde.give("nobody is to be asked for this in vain")
        async with running_backend(port=unused_port):
            [submit] = await horde.submitted()
    assert submit["state"] == "ok"
