"""Waits while Redis is broken (front F2, reliability B9)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from app.domain.redis_keys import chat_channel
from launcher.services.valkey import Valkey
from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import POP, ScriptedNative, answer
from tests.front.process.streams import content_of, opened
from tests.front.process.test_held_pop import JOB, pop
from tests.front.process.test_streaming import message
from tests.front.process.waiting import eventually
from tests.support.services import RunningService, free_port, wait_until

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[RunningService]:
    """A Valkey that the test may break."""
    service = RunningService(Valkey(tmp_path / "redis", free_port(), "throw-away"), tmp_path)
    service.start()
    yield service
    service.stop()


async def test_a_lost_signal_delays_until_the_poll(
    native: ScriptedNative, valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = {**QUICK, "FALLBACK_POLL_SECONDS": "0.3", "DEFAULT_DEADLINE_SECONDS": "60"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
        native.finish(await native.submitted())
        async with asyncio.timeout(5), await asking as response:
            assert response.status == 200


async def test_without_redis_requests_still_finish(
    native: ScriptedNative, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = {**QUICK, "FALLBACK_POLL_SECONDS": "0.3", "DEFAULT_DEADLINE_SECONDS": "60"}
    with running_front(tmp_path, native.url, f"redis://127.0.0.1:{free_port()}/0", **settings) as front:
        asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
        native.finish(await native.submitted())
        async with asyncio.timeout(5), await asking as response:
            assert response.status == 200


async def test_waits_are_woken_when_redis_comes_back(
    native: ScriptedNative, own_valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = {**QUICK, "DEFAULT_DEADLINE_SECONDS": "60"}
    with running_front(tmp_path, native.url, own_valkey.service.url, **settings) as front:
        wait_for_redis(front)
        asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
        request_id = await native.submitted()
        own_valkey.kill()
        native.finish(request_id)
        await asyncio.to_thread(own_valkey.start)
        async with asyncio.timeout(10), await asking as response:
            assert response.status == 200


async def test_a_wait_from_before_an_outage_hears_signals_after_it(
    native: ScriptedNative, own_valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = {**QUICK, "DEFAULT_DEADLINE_SECONDS": "60"}
    with running_front(tmp_path, native.url, own_valkey.service.url, **settings) as front:
        wait_for_redis(front)
        asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
        request_id = await native.submitted()
        own_valkey.kill()
        await asyncio.to_thread(own_valkey.start)
        signals = Signals(own_valkey.service.url)
        await eventually(lambda: chat_channel(request_id) in signals.channels(), "it does not listen again")
        await native.called("GET", f"/api/v2/generate/chat/status/{request_id}")
        native.finish(request_id)
        signals.chat(request_id)
        signals.close()
        async with asyncio.timeout(10), await asking as response:
            assert response.status == 200


async def test_a_held_pop_goes_on_asking_when_redis_goes_away(
    native: ScriptedNative, own_valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    with running_front(tmp_path, native.url, own_valkey.service.url, **QUICK) as front:
        wait_for_redis(front)
        popping = asyncio.create_task(pop(client, front, wait=25))
        await native.called("POST", POP)
        own_valkey.kill()
        native.script(f"POST {POP}", answer(200, {"id": None}), answer(200, JOB))
        async with asyncio.timeout(10):
            assert await popping == (200, JOB)


async def test_all_waits_share_one_connection_to_redis(
    front: FrontProcess, native: ScriptedNative, signals: Signals
) -> None:
    before = signals.subscribers()
    async with aiohttp.ClientSession() as client:
        waiting = [asyncio.create_task(client.post(front.url + PATH, json=BODY)) for _ in range(10)]
        await native.called("POST", "/api/v2/generate/chat/async", 10)
        assert signals.subscribers() == before
        for task in waiting:
            task.cancel()


POSTS = 30


@pytest.fixture
def cutting(front: FrontProcess, live_front: FrontProcess, signals: Signals) -> Iterator[Signals]:
    """Signals whose connections may be cut: at the end every front of this Valkey hears them again."""
    yield signals
    for each in (front, live_front):
        wait_for_redis(each)
    wait_until(lambda: signals.subscribers() >= 2, 10, "a front hears no signals")


async def test_a_stream_whose_connections_to_redis_are_cut_again_and_again_arrives_whole_and_once(
    live_front: FrontProcess, native: ScriptedNative, cutting: Signals, client: aiohttp.ClientSession
) -> None:
    words = [f"word {number} " for number in range(POSTS)]
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        for seq, word in enumerate(words):
            cutting.cut_others()
            cutting.text(request_id, seq, word)
            if seq % 3 == 0:
                # What came before a cut is read after it, from where the reader was.
                await stream.text("".join(words[max(0, seq - 2) : seq + 1]))
        native.finish(request_id, message=message(content="".join(words)))
        cutting.chat(request_id)
        assert content_of(await stream.rest()) == "".join(words[POSTS - 2 :])
