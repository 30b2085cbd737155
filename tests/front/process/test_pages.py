"""The front's pages over HTTP, and the events of the status page."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from front.status_feed import MOST_PAGES_OF_A_SOURCE
from tests.front.process.conftest import QUICK
from tests.front.process.front_process import FrontProcess, running_front
from tests.front.process.scripted_native import Received, Script, ScriptedNative
from tests.support.services import RunningService

FRAME = b'retry: 5000\nevent: status\ndata: {"html": "<p>one</p>"}\n\n'
EVENTS = "GET /status/events"


def look(frame: bytes = FRAME) -> Script:
    """A script that answers with one look."""

    async def run(_received: Received, _request: aiohttp.web.Request) -> aiohttp.web.StreamResponse:
        return aiohttp.web.Response(body=frame, headers={"Content-Type": "text/event-stream; charset=utf-8"})

    return run


@pytest.fixture
async def watched(front: FrontProcess, native: ScriptedNative) -> FrontProcess:
    """A front whose horde can be looked at."""
    native.script(EVENTS, look())
    return front


async def test_a_look_is_passed_on_as_it_is_and_the_stream_stays_open(
    watched: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    async with (
        client.get(f"{watched.url}/status/events") as first,
        client.get(f"{watched.url}/status/events") as second,
    ):
        assert first.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert await first.content.readexactly(len(FRAME)) == FRAME
        assert await second.content.readexactly(len(FRAME)) == FRAME
        assert await first.content.readline() == b": keep-alive\n"
    (call,) = native.calls("GET", "/status/events")
    assert "apikey" not in call.headers


async def test_without_a_horde_the_page_is_told_at_once(
    front: FrontProcess, client: aiohttp.ClientSession, native: ScriptedNative
) -> None:
    async with client.get(f"{front.url}/status/events") as response:
        assert response.status == 502
        assert (await response.json())["rc"] == "HordeUnreachable"
    assert native.calls("GET", "/status/events")


async def test_one_address_has_a_bounded_number_of_open_pages(
    watched: FrontProcess, client: aiohttp.ClientSession
) -> None:
    async def opened() -> aiohttp.ClientResponse:
        return await client.get(f"{watched.url}/status/events")

    pages = await asyncio.gather(*(opened() for _ in range(MOST_PAGES_OF_A_SOURCE)))
    assert {page.status for page in pages} == {200}
    async with client.get(f"{watched.url}/status/events") as refused:
        assert refused.status == 503
        assert refused.headers["retry-after"]
    for page in pages:
        page.close()


async def test_a_front_that_stops_ends_its_open_pages(
    native: ScriptedNative, valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    with running_front(tmp_path, native.url, valkey.service.url, **QUICK, DRAIN_SECONDS="20") as front:
        native.script(EVENTS, look())
        async with client.get(f"{front.url}/status/events") as response:
            assert await response.content.readexactly(len(FRAME)) == FRAME
            front.terminate()
            async with asyncio.timeout(5):
                await response.read()
        assert await asyncio.to_thread(front.wait, 10) == 0


@pytest.mark.parametrize(
    ("path", "told"),
    [("/", "/v1/chat/completions"), ("/chat", "Volunteers’ machines answer"), ("/docs", "/openapi.json")],
)
async def test_a_page_is_sent_with_a_policy(
    front: FrontProcess, client: aiohttp.ClientSession, path: str, told: str
) -> None:
    async with client.get(f"{front.url}{path}") as response:
        assert response.status == 200
        assert told in await response.text()
        policy = response.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "script-src" not in policy


async def test_the_page_that_tells_how_to_connect_names_the_address_it_was_asked_at(
    front: FrontProcess, client: aiohttp.ClientSession
) -> None:
    async with client.get(f"{front.url}/") as response:
        assert f"curl {front.url}/v1/chat/completions" in await response.text()
    async with client.get(f"{front.url}/", headers={"Host": "<b>evil</b>"}) as response:
        assert "evil" not in await response.text()


async def test_files_of_pages_are_served_and_others_are_not_there(
    front: FrontProcess, client: aiohttp.ClientSession
) -> None:
    async with client.get(f"{front.url}/pages/chat.js") as response:
        assert response.headers["content-type"] == "text/javascript; charset=utf-8"
        assert "immutable" in response.headers["cache-control"]
    async with client.get(f"{front.url}/pages/chat.html") as response:
        assert response.status == 404
