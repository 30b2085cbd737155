"""Answers that take longer than anybody's default time-out (reliability B4)."""

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.front.process.conftest import Signals
from tests.front.process.front_process import running_front, wait_for_redis
from tests.front.process.scripted_native import SUBMIT, ScriptedNative
from tests.front.process.streams import BODY, PATH, Stream, content_of
from tests.front.process.test_streaming import message
from tests.support.services import RunningService

LONG_SECONDS = 65.0
"""Quart gives a response 60 seconds, and so does many a proxy give a connection on which nothing is said."""

SILENCE_SECONDS = 20.0


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_stream_and_a_plain_call_outlast_a_minute_and_the_stream_is_never_silent_for_long(
    native: ScriptedNative, valkey: RunningService, signals: Signals, tmp_path: Path
) -> None:
    settings = {"DEFAULT_DEADLINE_SECONDS": "150", "AVAILABILITY_GRACE_SECONDS": "150"}
    timeout = aiohttp.ClientTimeout(total=120)
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        wait_for_redis(front)
        async with aiohttp.ClientSession(timeout=timeout) as client:
            plain: dict[str, Any] = {**BODY, "stream": False}
            waiting = asyncio.create_task(client.post(front.url + PATH, json=plain))
            async with client.post(front.url + PATH, json=BODY) as response:
                calls = await native.called("POST", SUBMIT, 2)
                until = time.monotonic() + LONG_SECONDS
                while time.monotonic() < until:
                    async with asyncio.timeout(SILENCE_SECONDS):
                        await response.content.readuntil(b"\n\n")
                for call in calls:
                    native.finish(call.headers["horde-request-id"], message=message(content="At last."))
                    signals.chat(call.headers["horde-request-id"])
                assert content_of(await Stream(response).rest()) == "At last."
            async with await waiting as answer:
                assert answer.status == 200
                assert (await answer.json())["choices"][0]["message"]["content"] == "At last."
