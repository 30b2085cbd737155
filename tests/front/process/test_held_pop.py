"""Pops that are held by the real front (native-api N3, details D16)."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from app.domain.capabilities import Requirements
from front.held_pop import POPS_AT_ONCE
from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import PASSKEY, FrontProcess, running_front
from tests.front.process.scripted_native import POP, RELEASE, Received, Script, ScriptedNative, answer, refusal
from tests.front.process.waiting import eventually
from tests.support.services import RunningService, free_port

DECLARATION: dict[str, Any] = {
    "name": "Box One",
    "chat_jobs": True,
    "model_id": "demo-8b",
    "chat_features": ["prompt_overflow_refused"],
    "chat_limits": {"max_context_length": 8192, "max_length": 1024},
}
WANTED = Requirements(
    is_chat=True, models=("demo-8b",), features=("prompt_overflow_refused",), max_length=512, max_context_length=2048
).stored()
OTHER = {**WANTED, "models": ["other-70b"]}
JOB = {"id": "0d0b6b5e-0000-4000-8000-000000000000", "payload": {"messages": []}, "skipped": {}}
KEY = {"apikey": "a-worker-key"}


async def pop(
    client: aiohttp.ClientSession, front: FrontProcess, path: str = POP, **changes: Any
) -> tuple[int, dict[str, Any]]:
    async with client.post(front.url + path, json={**DECLARATION, **changes}, headers=KEY) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("path", [POP, "/v2/generate/text/pop"])
async def test_a_job_that_is_there_comes_at_once(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, path: str
) -> None:
    native.script(f"POST {path}", answer(200, JOB))
    assert await pop(client, front, path) == (200, JOB)
    (call,) = native.calls("POST", path)
    assert call.json() == DECLARATION
    assert call.headers["apikey"] == "a-worker-key"
    assert call.headers["proxied-for"] == "127.0.0.1"
    assert call.headers["proxy-authorization"] == PASSKEY
    assert "front-authorization" not in call.headers


async def test_a_waiting_pop_gets_the_job_that_a_signal_announces(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    popping = asyncio.create_task(pop(client, front))
    await native.called("POST", POP)
    native.script(f"POST {POP}", answer(200, JOB))
    signals.queue(WANTED)
    assert await popping == (200, JOB)
    assert len(native.calls("POST", POP)) == 2


async def test_a_signal_for_what_the_worker_cannot_serve_does_not_wake_it(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    popping = asyncio.create_task(pop(client, front))
    await native.called("POST", POP)
    signals.queue(OTHER)
    native.script(f"POST {POP}", answer(200, JOB))
    signals.queue(WANTED)
    assert await popping == (200, JOB)
    assert len(native.calls("POST", POP)) == 2


async def test_a_pop_comes_back_empty_when_its_wait_is_over(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    started = time.monotonic()
    status, body = await pop(client, front, wait=0.4)
    assert (status, body["id"]) == (200, None)
    assert 0.4 <= time.monotonic() - started < 3
    assert len(native.calls("POST", POP)) == 1


@pytest.mark.parametrize("wait", [0, -1, 26, "long", True])
async def test_a_wait_that_is_none_is_left_to_the_horde(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, wait: Any
) -> None:
    async with asyncio.timeout(5):
        status, body = await pop(client, front, wait=wait)
    assert (status, body["id"]) == (200, None)


@pytest.mark.parametrize("raw", [b"{", b'{"chat_jobs": true, "name": "x"}'])
async def test_a_declaration_that_cannot_be_read_is_left_to_the_horde(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, raw: bytes
) -> None:
    native.script(f"POST {POP}", refusal(400, "BadRequest"))
    async with client.post(front.url + POP, data=raw) as response:
        assert response.status == 400
        assert (await response.json())["rc"] == "BadRequest"
    assert native.calls("POST", POP)[0].body == raw


async def test_a_refused_pop_is_not_held(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.script(f"POST {POP}", refusal(403, "WorkerMaintenance"))
    assert (await pop(client, front))[0] == 403


async def test_one_signal_wakes_one_worker_and_the_oldest_first(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    first = asyncio.create_task(pop(client, front, name="First", wait=5))
    await native.called("POST", POP)
    second = asyncio.create_task(pop(client, front, name="Second", wait=5))
    await native.called("POST", POP, 2)
    native.script(f"POST {POP}", answer(200, JOB))
    signals.queue(WANTED)
    assert (await first)[1]["id"] == JOB["id"]
    assert not second.done()
    assert len(native.calls("POST", POP)) == 3
    second.cancel()


async def test_a_worker_that_comes_back_empty_passes_the_wake_on(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    first = asyncio.create_task(pop(client, front, name="First", wait=5))
    await native.called("POST", POP)
    second = asyncio.create_task(pop(client, front, name="Second", wait=5))
    await native.called("POST", POP, 2)
    native.script(f"POST {POP}", answer(200, {"id": None}), answer(200, JOB))
    signals.queue(WANTED)
    assert (await second)[1]["id"] == JOB["id"]
    third, fourth = native.calls("POST", POP)[2:]
    assert [third.json()["name"], fourth.json()["name"]] == ["First", "Second"]
    first.cancel()


def held_script(result: dict[str, Any], opened: list[Callable[[], object]]) -> Script:
    """Answer only when the test opens it."""

    async def run(_received: Received, _request: web.Request) -> web.StreamResponse:
        loop, gate = asyncio.get_running_loop(), asyncio.Event()
        opened.append(lambda: loop.call_soon_threadsafe(gate.set))
        await gate.wait()
        return web.json_response(result)

    return run


async def test_a_signal_during_a_pop_is_not_lost(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    opened: list[Callable[[], object]] = []
    native.script(f"POST {POP}", held_script({"id": None}, opened), answer(200, JOB))
    popping = asyncio.create_task(pop(client, front))
    await eventually(lambda: bool(opened), "no pop came")
    signals.queue(WANTED)
    opened[0]()
    assert await popping == (200, JOB)


async def test_a_job_popped_for_a_worker_that_left_is_given_back(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    opened: list[Callable[[], object]] = []
    native.script(f"POST {POP}", held_script(JOB, opened))
    popping = asyncio.create_task(pop(client, front))
    await eventually(lambda: bool(opened), "no pop came")
    popping.cancel()
    async with client.get(f"{front.url}/healthz"):
        pass
    opened[0]()
    (call,) = await native.called("POST", RELEASE)
    assert call.json() == {"id": JOB["id"]}
    assert call.headers["front-authorization"] == PASSKEY


async def test_without_signals_a_held_pop_asks_again_by_itself(
    native: ScriptedNative, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    nowhere = f"redis://127.0.0.1:{free_port()}/0"
    with running_front(tmp_path, native.url, nowhere, **QUICK) as front:
        native.script(f"POST {POP}", answer(200, {"id": None}), answer(200, JOB))
        assert await pop(client, front, wait=10) == (200, JOB)


async def test_a_pop_that_reaches_no_root_is_told_so(
    valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    with running_front(tmp_path, f"http://127.0.0.1:{free_port()}", valkey.service.url, **QUICK) as front:
        status, body = await pop(client, front)
    assert (status, body["rc"]) == (502, "HordeUnreachable")


async def test_more_pops_than_may_be_at_the_horde_at_once_are_all_answered(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.script(f"POST {POP}", *(answer(200, JOB) for _ in range(2 * POPS_AT_ONCE)))
    answers = await asyncio.gather(*(pop(client, front) for _ in range(2 * POPS_AT_ONCE)))
    assert answers == [(200, JOB)] * (2 * POPS_AT_ONCE)
