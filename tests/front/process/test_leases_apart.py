"""A front whose leases and progress streams are on a Redis of their own (details D20)."""

from collections.abc import Iterator

import aiohttp
import pytest

from launcher.services.valkey import Valkey
from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import ScriptedNative
from tests.front.process.streams import content_of, opened
from tests.front.process.test_streaming import message
from tests.support.services import RunningService, free_port


@pytest.fixture(scope="module")
def other_valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    home = tmp_path_factory.mktemp("leases")
    home.chmod(0o711)
    service = RunningService(Valkey(home / "redis", free_port(), "throw-away"), home)
    service.start()
    yield service
    service.stop()


@pytest.fixture
def apart(
    native: ScriptedNative,
    valkey: RunningService,
    other_valkey: RunningService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[FrontProcess]:
    settings = {**QUICK, "STREAM_PACING": "false", "LEASES_URL": other_valkey.service.url}
    with running_front(tmp_path_factory.mktemp("apart"), native.url, valkey.service.url, **settings) as process:
        wait_for_redis(process)
        yield process


async def test_posts_are_read_there_as_they_ring_and_the_end_is_heard_where_signals_are(
    apart: FrontProcess,
    native: ScriptedNative,
    signals: Signals,
    other_valkey: RunningService,
    client: aiohttp.ClientSession,
) -> None:
    leases = Signals(other_valkey.service.url)
    async with opened(client, apart.url) as stream:
        request_id = await native.submitted()
        leases.text(request_id, 0, "Hello")
        await stream.text("Hello")
        leases.text(request_id, 1, " there")
        await stream.text(" there")
        native.finish(request_id, message=message(content="Hello there!"))
        signals.chat(request_id)
        assert content_of(await stream.rest()) == "!"
    assert leases.connections() <= 3
