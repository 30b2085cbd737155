"""Headers before the answer, for routers with short patience (details D20)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import SUBMIT, ScriptedNative, refusal
from tests.support.services import RunningService

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"


@pytest.fixture(scope="module")
def early(
    native_server: ScriptedNative, valkey: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontProcess]:
    folder: Path = tmp_path_factory.mktemp("front")
    native_server.reset()
    settings = {**QUICK, "EARLY_HEADERS_SECONDS": "0.1"}
    with running_front(folder, native_server.url, valkey.service.url, **settings) as front:
        wait_for_redis(front)
        yield front


async def test_headers_go_out_in_silence_and_white_space_until_the_reply_is_there(
    early: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with client.post(early.url + PATH, json=BODY) as response:
        assert response.status == 200
        assert response.headers["content-type"] == "application/json"
        assert await response.content.readexactly(2) == b"  "
        request_id = await native.submitted()
        native.finish(request_id)
        signals.chat(request_id)
        assert (await response.json())["choices"][0]["message"]["content"] == "Hello!"


async def test_what_fails_after_the_headers_is_an_envelope_under_a_200(
    early: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    async with client.post(early.url + PATH, json=BODY) as response:
        assert response.status == 200
        assert (await response.json())["error"]["code"] == "DeadlineExceeded"


async def test_what_is_refused_before_keeps_its_status(
    early: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.script(f"POST {SUBMIT}", refusal(429, "TooManyPrompts"))
    async with client.post(early.url + PATH, json=BODY) as response:
        assert response.status == 429


async def test_a_client_that_leaves_the_white_space_cancels_its_request(
    early: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    response = await client.post(early.url + PATH, json=BODY)
    request_id = await native.submitted()
    response.close()
    await native.called("DELETE", f"/api/v2/generate/chat/status/{request_id}", seconds=3)
