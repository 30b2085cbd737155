"""A text request on its way through the real front: submitted once, whatever answer gets lost."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from tests.front.process.conftest import QUICK
from tests.front.process.front_process import FrontProcess, running_front
from tests.front.process.scripted_native import Script, ScriptedNative, answer, refusal
from tests.front.process.test_behind_a_proxy import HEADERS
from tests.front.process.test_failures import lost, not_ours
from tests.support.services import RunningService

PATH = "/api/v2/generate/text/async"
ROUTE = f"POST {PATH}"
BODY = b'{"prompt": "Once upon", "models": ["demo-8b"]}'
ACCEPTED = answer(202, {"id": "r-1", "kudos": 3}, {"X-Root": "a"})
KEY = {"apikey": "a-key-of-a-client"}


async def submit(
    front: FrontProcess, client: aiohttp.ClientSession, headers: dict[str, str] | None = None, path: str = PATH
) -> tuple[int, dict[str, object]]:
    async with client.post(front.url + path, data=BODY, headers=KEY | (headers or {})) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("path", [PATH, "/v2/generate/text/async"])
async def test_a_text_is_submitted_under_a_key_with_the_clients_own_bytes(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, path: str
) -> None:
    native.script(f"POST {path}", ACCEPTED)
    assert await submit(front, client, path=path) == (202, {"id": "r-1", "kudos": 3})
    (call,) = native.calls("POST", path)
    assert (call.body, call.headers["apikey"]) == (BODY, KEY["apikey"])
    assert len(call.headers["operation-key"]) >= 22


@pytest.mark.parametrize("first", [lost(), not_ours(502)], ids=["lost", "of-nobody"])
async def test_a_lost_answer_is_asked_for_again_under_the_same_key(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, first: Script
) -> None:
    native.script(ROUTE, first, ACCEPTED)
    assert (await submit(front, client))[0] == 202
    before, after = native.calls("POST", PATH)
    assert (before.headers["operation-key"], before.body) == (after.headers["operation-key"], after.body)


async def test_what_no_root_answers_is_a_502(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.script(ROUTE, lost(), lost(), lost())
    status, body = await submit(front, client)
    assert (status, body["rc"]) == (502, "HordeUnreachable")
    assert len(native.calls("POST", PATH)) == 3


@pytest.mark.parametrize("status", [429, 503])
async def test_a_refusal_is_the_answer(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, status: int
) -> None:
    native.script(ROUTE, refusal(status, "TooManyPrompts"))
    assert (await submit(front, client))[0] == status
    assert len(native.calls("POST", PATH)) == 1


async def test_two_texts_are_two_requests(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.script(ROUTE, ACCEPTED, ACCEPTED)
    await asyncio.gather(submit(front, client), submit(front, client))
    assert len({call.headers["operation-key"] for call in native.calls("POST", PATH)}) == 2


async def test_a_clients_own_key_wins(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.script(ROUTE, ACCEPTED)
    await submit(front, client, {"Operation-Key": "mine"})
    assert [call.headers["operation-key"] for call in native.calls("POST", PATH)] == ["mine"]


async def test_a_text_that_a_known_proxy_repeats_keeps_its_key(
    native: ScriptedNative, valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = {**QUICK, "TRUSTED_PROXIES": "127.0.0.0/8"}
    native.script(ROUTE, ACCEPTED, ACCEPTED)
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as behind:
        for _ in range(2):
            assert (await submit(behind, client, HEADERS))[0] == 202
    assert len({call.headers["operation-key"] for call in native.calls("POST", PATH)}) == 1


async def test_a_text_that_is_too_long_is_told_so(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    async with client.post(front.url + PATH, data=b"x" * 120_000, headers=KEY) as response:
        assert response.status == 413
        assert (await response.json())["rc"] == "PayloadTooLarge"
    assert native.calls("POST", PATH) == []
