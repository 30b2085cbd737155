"""Clients that stop reading, beside others that read (reliability B6)."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import aiohttp
import orjson
import pytest

from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import ScriptedNative
from tests.front.process.streams import BODY, PATH, opened
from tests.front.process.waiting import eventually
from tests.support.services import RunningService

STALLED = 8
LARGE = "x" * 60_000
POSTS = 40
"""So much that neither the sockets' buffers nor the front's room for a slow client hold it."""


@pytest.fixture
def own_front(
    native: ScriptedNative, valkey: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontProcess]:
    settings = {**QUICK, "STREAM_PACING": "false", "DEFAULT_DEADLINE_SECONDS": "30", "AVAILABILITY_GRACE_SECONDS": "30"}
    with running_front(tmp_path_factory.mktemp("own"), native.url, valkey.service.url, **settings) as process:
        wait_for_redis(process)
        yield process


def stalled_reader(url: str) -> socket.socket:
    """A client that asks for a stream and never reads, with the smallest buffer that it can have."""
    target = urlsplit(url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((target.hostname, target.port))
    body = orjson.dumps(BODY)
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + body)
    return client


@pytest.mark.slow
async def test_clients_that_stop_reading_do_not_hold_up_those_that_read(
    own_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    with ExitStack() as stack:
        for _ in range(STALLED):
            stack.enter_context(stalled_reader(own_front.url))
        calls = await native.called("POST", "/api/v2/generate/chat/async", STALLED)
        for call in calls:
            for seq in range(POSTS):
                signals.text(call.headers["horde-request-id"], seq, LARGE)
        async with opened(client, own_front.url) as stream:
            [request_id] = {
                each.headers["horde-request-id"]
                for each in await native.called("POST", "/api/v2/generate/chat/async", STALLED + 1)
            } - {each.headers["horde-request-id"] for each in calls}
            for seq in range(20):
                signals.text(request_id, seq, f"word {seq} ")
                async with asyncio.timeout(5):
                    await stream.text(f"word {seq} ")
    # They are gone now, and what they asked for is cancelled.
    await eventually(lambda: len(native.cancelled()) >= STALLED, "some are left in the queue", 20)
