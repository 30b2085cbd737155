"""Stopping the real front (front F6, reliability B1-B3)."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import psutil
import pytest

from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import POP, SUBMIT, ScriptedNative
from tests.front.process.test_held_pop import pop
from tests.front.process.waiting import eventually
from tests.support.services import RunningService

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"
STATUS = "/api/v2/generate/chat/status/"


@pytest.fixture
def stopping(native: ScriptedNative, valkey: RunningService, tmp_path: Path) -> Iterator[FrontProcess]:
    """A front of this test's own, which gives open requests two seconds."""
    settings = {**QUICK, "DRAIN_SECONDS": "2", "DEFAULT_DEADLINE_SECONDS": "60"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        wait_for_redis(front)
        yield front


async def test_open_requests_finish_and_newcomers_are_sent_away(
    stopping: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    asking = asyncio.create_task(client.post(stopping.url + PATH, json=BODY))
    request_id = await native.submitted()
    stopping.terminate()
    await eventually(lambda: "stopping" in stopping.log.read_text(), "the front does not stop")
    async with client.get(f"{stopping.url}/readyz") as response:
        assert response.status == 503
        assert (await response.json())["draining"] is True
    async with client.post(stopping.url + PATH, json=BODY) as response:
        assert response.status == 503
        assert (await response.json())["error"]["code"] == "service_unavailable"
        assert "x-should-retry" not in response.headers
    native.finish(request_id)
    signals.chat(request_id)
    async with await asking as response:
        assert response.status == 200
    assert await asyncio.to_thread(stopping.wait, 5) == 0
    assert native.calls("DELETE", STATUS + request_id) == []


async def test_what_does_not_finish_in_time_is_told_so_and_cancelled(
    stopping: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    plain = asyncio.create_task(client.post(stopping.url + PATH, json=BODY))
    await native.called("POST", SUBMIT)
    stream = await client.post(stopping.url + PATH, json={**BODY, "stream": True})
    await native.called("POST", SUBMIT, 2)
    started = time.monotonic()
    stopping.terminate()
    async with await plain as response:
        assert response.status == 503
        assert response.headers["x-should-retry"] == "false"
        assert (await response.json())["error"]["code"] == "service_unavailable"
    events = (await stream.read()).split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    assert orjson.loads(events[-3].removeprefix(b"data: "))["error"]["code"] == "service_unavailable"
    assert await asyncio.to_thread(stopping.wait, 10) == 0
    assert 2 <= time.monotonic() - started < 6
    cancelled = {call.path for call in native.calls("DELETE", STATUS)}
    assert {STATUS + call.headers["horde-request-id"] for call in native.calls("POST", SUBMIT)} <= cancelled


async def test_five_hundred_open_requests_each_get_an_answer_or_a_proper_error_and_nothing_stays_queued(
    native: ScriptedNative, valkey: RunningService, signals: Signals, tmp_path: Path
) -> None:
    settings = {**QUICK, "DRAIN_SECONDS": "4", "DEFAULT_DEADLINE_SECONDS": "100", "FRONT_SOURCE_LIMIT": "500"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            plain = [asyncio.create_task(read(client, front, BODY)) for _ in range(250)]
            streams = [asyncio.create_task(read(client, front, {**BODY, "stream": True})) for _ in range(250)]
            submits = await native.called("POST", SUBMIT, 500, seconds=60)
            ids = [call.headers["horde-request-id"] for call in submits]
            front.terminate()
            await eventually(lambda: "stopping" in front.log.read_text(), "the front does not stop")
            finished = set(ids[::5])
            for request_id in finished:
                native.finish(request_id)
                signals.chat(request_id)
            answers = [*await asyncio.gather(*plain), *await asyncio.gather(*streams)]
        assert await asyncio.to_thread(front.wait, 20) == 0
    told = [body for status, body in answers if is_told_to_come_again(status, body)]
    assert len(told) == 400
    assert sum(b"Hello!" in body for _, body in answers) == 100
    assert all(body.endswith(b"data: [DONE]\n\n") for _, body in answers[250:])
    assert set(ids) - finished - native.cancelled() == set()
    assert native.cancelled() & finished == set()


async def read(client: aiohttp.ClientSession, front: FrontProcess, body: dict[str, Any]) -> tuple[int, bytes]:
    """Ask, and take what comes to its end."""
    async with client.post(front.url + PATH, json=body) as response:
        return response.status, await response.read()


def is_told_to_come_again(status: int, body: bytes) -> bool:
    """Whether it is the error of a front that stops, as a plain answer or in a stream."""
    return b'"code":"service_unavailable"' in body and (status == 503 or body.count(b'"error"') == 1)


async def test_held_pops_come_back_at_once(
    stopping: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    popping = asyncio.create_task(pop(client, stopping, wait=20))
    await native.called("POST", POP)
    stopping.terminate()
    async with asyncio.timeout(2):
        status, body = await popping
    assert (status, body["id"]) == (200, None)
    assert await asyncio.to_thread(stopping.wait, 5) == 0


async def test_a_front_is_one_process_so_that_a_signal_to_its_group_reaches_nobody_else(stopping: FrontProcess) -> None:
    assert psutil.Process(stopping.process.pid).children(recursive=True) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_idle_front_stops_at_once_and_cleanly(
    stopping: FrontProcess, client: aiohttp.ClientSession, number: signal.Signals
) -> None:
    async with client.get(f"{stopping.url}/healthz") as response:
        assert response.status == 200
    stopping.process.send_signal(number)
    assert await asyncio.to_thread(stopping.wait, 3) == 0
    log = stopping.log.read_text()
    assert "Traceback" not in log
    assert "never awaited" not in log
