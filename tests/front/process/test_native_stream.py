"""A request's progress as server-sent events for native clients (native-api N3, details D6, D18)."""

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from app.domain.progress_entries import ProgressEntry
from tests.front.process.conftest import Signals
from tests.front.process.front_process import PASSKEY, FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import ScriptedNative, refusal
from tests.support.services import RunningService

STATUS = "/api/v2/generate/chat/status/"
ID = "0b9c1a52-0000-4000-8000-000000000001"
PATHS = ("/v2/generate/chat/stream/", "/api/v2/generate/chat/stream/")


async def event_of(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The next event that is no comment, field by field."""
    while (raw := await response.content.readuntil(b"\n\n")).startswith(b":"):
        pass
    fields = dict(line.split(": ", 1) for line in raw.decode().strip().split("\n"))
    return {**fields, "data": orjson.loads(fields["data"])}


@pytest.fixture
def request_id(native: ScriptedNative, signals: Signals) -> str:
    """A request that a worker works on."""
    native.set_status(ID, state="processing", processing=1, waiting=0)
    signals.erase(ID)
    return ID


@pytest.mark.parametrize("path", PATHS)
async def test_entries_come_with_their_places_and_the_status_at_the_end(
    live_front: FrontProcess,
    native: ScriptedNative,
    signals: Signals,
    client: aiohttp.ClientSession,
    request_id: str,
    path: str,
) -> None:
    first = signals.text(request_id, 0, "Hel")
    async with client.get(live_front.url + path + request_id) as response:
        assert response.status == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert await event_of(response) == {
            "event": "delta",
            "id": first,
            "data": {"generation": "g1", "seq": 0, "delta": "Hel", "reasoning_delta": ""},
        }
        second = signals.text(request_id, 1, "lo", reasoning_delta="hm")
        assert (await event_of(response))["id"] == second
        third = signals.post(request_id, ProgressEntry(generation_id="g1", ended=True))
        assert await event_of(response) == {"event": "ended", "id": third, "data": {"generation": "g1"}}
        native.finish(request_id)
        signals.chat(request_id)
        done = await event_of(response)
        assert (done["event"], done["id"]) == ("done", "done")
        assert done["data"]["state"] == "done"
        assert done["data"]["generations"][0]["message"]["content"] == "Hello!"
        assert await response.content.read() == b""


async def test_a_client_that_comes_back_goes_on_where_it_was(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession, request_id: str
) -> None:
    places = [signals.text(request_id, seq, f"{seq} ") for seq in range(4)]
    native.finish(request_id)
    url = live_front.url + PATHS[0] + request_id
    async with client.get(url, headers={"Last-Event-ID": places[1]}) as response:
        events = [await event_of(response) for _ in range(3)]
    assert [event["id"] for event in events] == [*places[2:], "done"]
    async with client.get(url, headers={"Last-Event-ID": "done"}) as response:
        assert response.status == 204


async def test_silence_is_filled_with_comments(
    live_front: FrontProcess, client: aiohttp.ClientSession, request_id: str
) -> None:
    async with client.get(live_front.url + PATHS[0] + request_id) as response:
        for _ in range(2):
            assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"


async def test_the_native_api_decides_who_may_listen_by_the_clients_own_key(
    live_front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, request_id: str
) -> None:
    native.script(f"GET {STATUS}", refusal(404, "RequestNotFound"), refusal(401, "InvalidAPIKey"))
    url = live_front.url + PATHS[0] + request_id
    headers = {"apikey": "somebody-else", "Front-Authorization": PASSKEY}
    for status, code in ((404, "RequestNotFound"), (401, "InvalidAPIKey")):
        async with client.get(url, headers=headers) as response:
            assert response.status == status
            assert (await response.json())["rc"] == code
    for call in native.calls("GET", STATUS + request_id):
        assert call.headers["apikey"] == "somebody-else"
        assert "front-authorization" not in call.headers
        assert call.headers["proxy-authorization"] == PASSKEY


async def test_without_a_key_the_caller_is_anonymous(
    live_front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, request_id: str
) -> None:
    async with client.get(live_front.url + PATHS[0] + request_id) as response:
        assert response.status == 200
    assert native.calls("GET", STATUS + request_id)[0].headers["apikey"] == "0000000000"


@pytest.mark.parametrize(
    ("name", "headers", "status", "code"),
    [
        ("no/such/id", {}, 404, "NotFound"),
        ("a" * 65, {}, 404, "RequestNotFound"),
        ("a%0ab", {}, 404, "RequestNotFound"),
        (ID, {"Last-Event-ID": "yesterday"}, 400, "invalid_request"),
        (ID, {"apikey": "ké"}, 401, "invalid_api_key"),
    ],
)
async def test_what_cannot_be_understood_is_refused(
    live_front: FrontProcess,
    client: aiohttp.ClientSession,
    request_id: str,
    name: str,
    headers: dict[str, str],
    status: int,
    code: str,
) -> None:
    from yarl import URL

    url = URL(live_front.url + PATHS[0] + name, encoded=True)
    async with client.get(url, headers=headers) as response:
        assert (response.status, (await response.json())["rc"]) == (status, code)


async def test_several_clients_may_listen_beside_the_one_that_asked(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession, request_id: str
) -> None:
    url = live_front.url + PATHS[0] + request_id
    async with client.get(url) as one, client.get(url) as other:
        place = signals.text(request_id, 0, "Hi")
        assert (await event_of(one))["id"] == place == (await event_of(other))["id"]
        one.close()
        place = signals.text(request_id, 1, "!")
        assert (await event_of(other))["id"] == place
    assert native.calls("DELETE", STATUS) == []


async def test_a_long_stream_is_read_to_its_end(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession, request_id: str
) -> None:
    for seq in range(450):
        signals.text(request_id, seq, "x", silently=True)
    native.finish(request_id)
    async with client.get(live_front.url + PATHS[0] + request_id) as response:
        events = [await event_of(response) for _ in range(451)]
    assert [event["data"].get("seq") for event in events[:-1]] == list(range(450))
    assert events[-1]["event"] == "done"


async def test_a_stopping_front_sends_its_listeners_elsewhere_at_once(
    native: ScriptedNative, valkey: RunningService, tmp_path: Any, client: aiohttp.ClientSession, request_id: str
) -> None:
    with running_front(tmp_path, native.url, valkey.service.url) as front:
        wait_for_redis(front)
        async with client.get(front.url + PATHS[0] + request_id) as response:
            front.terminate()
            event = await event_of(response)
            assert (event["event"], event["data"]["rc"]) == ("error", "service_unavailable")
            assert await response.content.read() == b""
        assert await asyncio.to_thread(front.wait, 10) == 0
