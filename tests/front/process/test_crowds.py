"""Many clients at once: polls, vanished clients, a flood, services that are gone (front F2, details D9, D12)."""

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from launcher.services.valkey import Valkey
from tests.front.process.conftest import QUICK
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import CANCELS, CHAT, STATUSES, SUBMIT, ScriptedNative, finished_at_once
from tests.front.process.waiting import eventually
from tests.support.services import RunningService, free_port
from tests.support.tcp_proxy import TcpProxy

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"
CROWD = 100
SETTINGS = {
    **QUICK,
    "FALLBACK_POLL_SECONDS": "0.5",
    "DEFAULT_DEADLINE_SECONDS": "100",
    "AVAILABILITY_GRACE_SECONDS": "100",
    "FRONT_SOURCE_LIMIT": str(CROWD),
    "TRUSTED_PROXIES": "1",
}


@pytest.fixture
async def crowd() -> AsyncIterator[aiohttp.ClientSession]:
    timeout, connector = aiohttp.ClientTimeout(total=60), aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        yield session


@pytest.fixture(scope="module")
def crowded(
    native_server: ScriptedNative, valkey: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontProcess]:
    folder = tmp_path_factory.mktemp("crowded")
    with running_front(folder, native_server.url, valkey.service.url, **SETTINGS) as front:
        wait_for_redis(front)
        yield front


async def status_of(session: aiohttp.ClientSession, front: FrontProcess, address: str = "192.0.2.1") -> int:
    """Ask from an address; the answer's status."""
    async with session.post(front.url + PATH, json=BODY, headers={"X-Forwarded-For": address}) as response:
        await response.read()
        return response.status


async def ask(session: aiohttp.ClientSession, front: FrontProcess, native: ScriptedNative) -> list[asyncio.Task[int]]:
    """A crowd that waits."""
    asking = [asyncio.create_task(status_of(session, front)) for _ in range(CROWD)]
    await native.called("POST", SUBMIT, CROWD, seconds=30)
    return asking


def is_resting(front: FrontProcess) -> bool:
    """Whether the front takes a root for dead."""
    with urllib.request.urlopen(f"{front.url}/metrics", timeout=5) as response:  # noqa: S310 - a URL of ours
        return b"horde_front_resting_roots 1.0" in response.read()


def ids(native: ScriptedNative) -> list[str]:
    return [call.headers["horde-request-id"] for call in native.calls("POST", SUBMIT)]


async def test_all_waits_poll_together(
    crowded: FrontProcess, native: ScriptedNative, crowd: aiohttp.ClientSession
) -> None:
    asking = await ask(crowd, crowded, native)
    await native.called("POST", STATUSES, 8)
    for request_id in ids(native):
        native.finish(request_id)
    assert await asyncio.gather(*asking) == [200] * CROWD
    assert native.calls("GET", f"{CHAT}/status/") == []


async def test_clients_that_vanish_together_are_cancelled_together(
    crowded: FrontProcess, native: ScriptedNative, crowd: aiohttp.ClientSession
) -> None:
    asking = await ask(crowd, crowded, native)
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    await eventually(lambda: native.cancelled() == set(ids(native)), "some are left in the queue")
    assert native.calls("POST", CANCELS)
    assert len(native.calls("DELETE", f"{CHAT}/status/")) < CROWD / 2


async def test_what_a_worker_has_begun_is_cancelled_by_itself(
    crowded: FrontProcess, native: ScriptedNative, crowd: aiohttp.ClientSession
) -> None:
    asking = await ask(crowd, crowded, native)
    begun = set(ids(native)[-10:])
    native.begun = begun
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    await eventually(
        lambda: (
            {each for each, status in native.statuses.items() if status["state"] == "cancelled"} == set(ids(native))
        ),
        "some are left",
    )
    alone = {call.path.rpartition("/")[2] for call in native.calls("DELETE", f"{CHAT}/status/")}
    assert begun <= alone


async def test_a_flood_from_one_source_keeps_nobody_else_out(
    native: ScriptedNative, valkey: RunningService, crowd: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = SETTINGS | {"FRONT_SOURCE_LIMIT": "4"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        flood = [asyncio.create_task(status_of(crowd, front)) for _ in range(4 * 50)]
        await native.called("POST", SUBMIT, 4)
        native.initial = finished_at_once()
        others = await asyncio.gather(*(status_of(crowd, front, f"198.51.100.{each}") for each in range(20)))
        assert others == [200] * 20
        await eventually(lambda: sum(task.done() for task in flood) == 4 * 49, "the flood is not refused")
        assert {task.result() for task in flood if task.done()} == {503}
        for request_id in ids(native)[:4]:
            native.finish(request_id)
        assert sorted(await asyncio.gather(*flood)) == [200] * 4 + [503] * 4 * 49


async def test_requests_finish_by_the_poll_while_redis_is_gone(
    native: ScriptedNative, crowd: aiohttp.ClientSession, tmp_path: Path
) -> None:
    service = RunningService(Valkey(tmp_path / "redis", free_port(), "throw-away"), tmp_path)
    service.start()
    try:
        with running_front(tmp_path, native.url, service.service.url, **SETTINGS) as front:
            wait_for_redis(front)
            asking = await ask(crowd, front, native)
            service.kill()
            for request_id in ids(native):
                native.finish(request_id)
            assert await asyncio.gather(*asking) == [200] * CROWD
            native.initial = finished_at_once()
            assert await status_of(crowd, front) == 200
    finally:
        service.stop()


async def test_waits_survive_a_native_api_that_is_gone_for_a_while_and_finish(
    native: ScriptedNative, valkey: RunningService, crowd: aiohttp.ClientSession, tmp_path: Path
) -> None:
    with TcpProxy(native.url) as link:
        settings = SETTINGS | {"AVAILABILITY_GRACE_SECONDS": "1"}
        with running_front(tmp_path, link.url, valkey.service.url, **settings) as front:
            wait_for_redis(front)
            asking = await ask(crowd, front, native)
            with link.down():
                # Nobody could serve them any more, as far as the front knows: longer than the grace.
                await eventually(lambda: is_resting(front), "the front does not notice")
                await asyncio.sleep(1.5)
            assert [task for task in asking if task.done()] == []
            for request_id in ids(native):
                native.finish(request_id)
            assert await asyncio.gather(*asking) == [200] * CROWD


async def test_a_front_with_a_dead_root_is_ready_and_goes_to_the_living_one(
    native: ScriptedNative, valkey: RunningService, crowd: aiohttp.ClientSession, tmp_path: Path
) -> None:
    native.initial = finished_at_once()
    roots = f"http://127.0.0.1:{free_port()},{native.url}"
    with running_front(tmp_path, roots, valkey.service.url, **SETTINGS) as front:
        wait_for_redis(front)
        for _ in range(3):
            async with crowd.get(f"{front.url}/readyz") as response:
                assert response.status == 200
            assert await status_of(crowd, front) == 200
        assert is_resting(front)
    assert len(native.calls("POST", SUBMIT)) == 3
