"""A front behind a proxy that tries a call again at another front (decision 0081)."""

import asyncio
import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
import pytest

from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import SUBMIT, ScriptedNative, finished_at_once
from tests.front.process.waiting import eventually
from tests.support.services import RunningService

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"
KEY = "0123456789abcdef0123456789abcdef"
HEADERS = {"Horde-Repeat-Key": KEY}


@pytest.fixture
def behind(native: ScriptedNative, valkey: RunningService, tmp_path: Path) -> Iterator[FrontProcess]:
    """A front of this test's own, whose proxy is on this machine."""
    settings = {**QUICK, "TRUSTED_PROXIES": "127.0.0.0/8", "DRAIN_SECONDS": "5", "DEFAULT_DEADLINE_SECONDS": "60"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        wait_for_redis(front)
        yield front


async def keys_of_two_calls(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, headers: dict[str, str]
) -> set[str]:
    """The operation keys under which the same call is submitted, when it is made twice with these headers."""
    native.initial = finished_at_once()
    for _ in range(2):
        async with client.post(front.url + PATH, json=BODY, headers=headers) as response:
            assert response.status == 200
    return {call.headers["operation-key"] for call in native.calls("POST", SUBMIT)}


async def test_a_call_that_a_known_proxy_repeats_is_submitted_under_the_same_key(
    behind: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    assert len(await keys_of_two_calls(behind, native, client, HEADERS)) == 1


@pytest.mark.parametrize("given", ["", "short", "with spaces, and more than 22 characters", "x" * 65])
async def test_a_key_that_no_proxy_makes_is_nothing_to_the_front(
    behind: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, given: str
) -> None:
    assert len(await keys_of_two_calls(behind, native, client, {"Horde-Repeat-Key": given})) == 2


async def test_a_client_cannot_give_its_calls_a_key(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    assert len(await keys_of_two_calls(front, native, client, HEADERS | {"Idempotency-Key": KEY})) == 2


async def test_a_number_of_proxies_does_not_say_which_ones_may_give_a_key(
    native: ScriptedNative, valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    with running_front(tmp_path, native.url, valkey.service.url, **QUICK, TRUSTED_PROXIES="1") as counted:
        wait_for_redis(counted)
        assert len(await keys_of_two_calls(counted, native, client, HEADERS)) == 2


async def test_the_key_of_a_call_is_not_passed_through(
    behind: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    async with client.get(f"{behind.url}/api/v2/workers", headers=HEADERS) as response:
        await response.read()
    (call,) = native.calls("GET", "/api/v2/workers")
    assert "horde-repeat-key" not in call.headers


async def test_a_drain_takes_no_new_connection_and_serves_each_kept_one_once_more(
    behind: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    kept = http.client.HTTPConnection(urlsplit(behind.url).netloc, timeout=20)
    kept.request("GET", "/healthz")
    assert kept.getresponse().read()
    asking = asyncio.create_task(client.post(behind.url + PATH, json=BODY))
    request_id = await native.submitted()
    behind.terminate()
    await eventually(lambda: is_refused(behind), "the front still takes connections")
    native.initial = finished_at_once()
    kept.request("POST", PATH, body=orjson.dumps(BODY), headers={"Content-Type": "application/json"})
    served = await asyncio.to_thread(kept.getresponse)
    assert (served.status, served.getheader("connection")) == (200, "close")
    assert b"Hello!" in served.read()
    native.finish(request_id)
    signals.chat(request_id)
    async with await asking as response:
        assert response.status == 200
    assert await asyncio.to_thread(behind.wait, 5) == 0


def is_refused(front: FrontProcess) -> bool:
    """Whether a new connection is refused."""
    probe = http.client.HTTPConnection(urlsplit(front.url).netloc, timeout=5)
    try:
        probe.connect()
    except ConnectionRefusedError:
        return True
    finally:
        probe.close()
    return False
