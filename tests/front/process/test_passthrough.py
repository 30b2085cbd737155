"""The native API through the front's door (front F7, details D9, D18)."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from tests.front.process.conftest import QUICK
from tests.front.process.front_process import PASSKEY, FrontProcess, running_front
from tests.front.process.scripted_native import POP, Received, Script, ScriptedNative, answer, generation_of
from tests.front.process.test_failures import lost
from tests.support.services import RunningService, free_port

SUBMIT_REPLY = "/api/v2/generate/text/submit"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", SUBMIT_REPLY),
        ("GET", "/v2/workers"),
        ("PUT", "/api/v2/workers/x"),
        ("GET", "/api"),
        ("GET", "/api/openapi.json"),
        ("POST", "/register"),
        ("GET", "/status"),
        ("GET", "/.well-known/serviceinfo"),
    ],
)
async def test_a_listed_path_reaches_a_root_as_it_was_sent(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, method: str, path: str
) -> None:
    native.script(f"{method} {path}", answer(418, {"seen": True}, {"X-Root": "a"}))
    target = URL(f"{front.url}{path}?a=%2F&b", encoded=True)
    async with client.request(method, target, data=b'{"k":1}', headers={"apikey": "k"}) as response:
        assert response.status == 418
        assert response.headers["x-root"] == "a"
        assert response.headers["access-control-allow-origin"] == "*"
        assert await response.json() == {"seen": True}
    (call,) = native.calls(method, path)
    assert (call.query, call.body, call.headers["apikey"]) == ("a=%2F&b", b'{"k":1}', "k")


async def test_nobody_can_vouch_for_an_address_from_outside(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    forged = {
        "Proxied-For": "6.6.6.6",
        "Proxied_For": "6.6.6.6",
        "Proxy-Authorization": PASSKEY,
        "Front-Authorization": PASSKEY,
        "Front_Authorization": PASSKEY,
        "X-Forwarded-For": "6.6.6.6",
        "Connection": "x-hop",
        "X-Hop": "1",
    }
    async with client.get(f"{front.url}/api/v2/workers", headers=forged) as response:
        assert response.status == 404
    (call,) = native.calls("GET", "/api/v2/workers")
    assert call.headers["proxied-for"] == "127.0.0.1"
    assert call.headers["proxy-authorization"] == PASSKEY
    assert not {"front-authorization", "front_authorization", "proxied_for", "x-forwarded-for", "x-hop"} & set(
        call.headers
    )


async def test_without_a_passkey_the_front_vouches_for_nobody(
    native: ScriptedNative, valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    with running_front(tmp_path, native.url, valkey.service.url, **{**QUICK, "SERVICE_PASSKEY": ""}) as front:
        async with client.get(f"{front.url}/api/v2/workers", headers={"Proxied-For": "6.6.6.6"}):
            pass
        body = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
        native.initial = {"state": "done", "generations": [generation_of()]}
        async with client.post(f"{front.url}/v1/chat/completions", json=body) as response:
            assert response.status == 200
    for call in (*native.calls("GET", "/api/v2/workers"), *native.calls("POST", "/api/v2/generate/chat/async")):
        assert not {"proxied-for", "proxy-authorization", "front-authorization"} & set(call.headers)


@pytest.mark.parametrize(
    "path",
    [
        "/internal/release",
        "/api/v2/../../internal/release",
        "/api/v2/%2e%2e/%2e%2e/internal/release",
        "/api/v2/..%2f..%2finternal/release",
        "/v2/%252e%252e/internal",
        "/api/v2/x\\..\\internal",
        "/api/v1/workers",
        "/apix",
    ],
)
async def test_no_path_leads_out_of_the_listed_prefixes(front: FrontProcess, native: ScriptedNative, path: str) -> None:
    reader, writer = await asyncio.open_connection(URL(front.url).host, URL(front.url).port)
    writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(10):
        assert (await reader.read()).startswith(b"HTTP/1.1 404")
    writer.close()
    assert [call for call in native.received if call.method == "POST" and "internal" in call.path] == []


def streaming(pieces: list[bytes], gate: list[Any]) -> Script:
    """Send the first piece, and the rest only when the test lets it."""

    async def run(_received: Received, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(pieces[0])
        event = asyncio.Event()
        loop = asyncio.get_running_loop()
        gate.append(lambda: loop.call_soon_threadsafe(event.set))
        await event.wait()
        for piece in pieces[1:]:
            await response.write(piece)
        return response

    return run


async def test_an_answer_is_streamed_as_it_comes(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    gate: list[Any] = []
    native.script("GET /api/v2/status", streaming([b"one", b"two"], gate))
    async with client.get(f"{front.url}/api/v2/status/heartbeat") as response:
        assert await response.content.readany() == b"one"
        gate[0]()
        assert await response.content.read() == b"two"


async def test_a_body_is_streamed_to_the_root(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    async def pieces() -> Any:
        for _ in range(5):
            yield b"x" * 1000

    async with client.post(front.url + SUBMIT_REPLY, data=pieces()) as response:
        assert response.status == 404
    (call,) = native.calls("POST", SUBMIT_REPLY)
    assert call.body == b"x" * 5000


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_above_the_limit_is_told_so(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, chunked: bool
) -> None:
    async def pieces() -> Any:
        for _ in range(30):
            yield b"x" * 10_000

    data: Any = pieces() if chunked else b"x" * 300_000
    async with client.post(front.url + SUBMIT_REPLY, data=data) as response:
        assert response.status == 413
        assert (await response.json())["rc"] == "PayloadTooLarge"


async def test_a_head_keeps_the_length_of_what_a_get_would_bring(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    async with client.head(f"{front.url}/api/openapi.json") as response:
        assert response.status == 404
        assert int(response.headers["content-length"]) > 0


async def test_a_dead_root_is_passed_over_and_no_root_is_a_502(
    native: ScriptedNative, valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    with running_front(tmp_path, f"{dead},{native.url}", valkey.service.url, **QUICK) as front:
        for _ in range(2):
            native.script("POST /api/v2/x", answer(200, {}))
            async with client.post(f"{front.url}/api/v2/x", data=b"body") as response:
                assert response.status == 200
        assert [call.body for call in native.calls("POST", "/api/v2/x")] == [b"body", b"body"]
    with running_front(tmp_path, dead, valkey.service.url, **QUICK) as front:
        async with client.post(f"{front.url}/api/v2/x", data=b"body") as response:
            assert response.status == 502
            assert (await response.json())["rc"] == "HordeUnreachable"


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("POST", 502)])
async def test_only_what_reads_is_asked_again_where_a_root_died_over_its_answer(
    native: ScriptedNative,
    valkey: RunningService,
    client: aiohttp.ClientSession,
    tmp_path: Path,
    method: str,
    status: int,
) -> None:
    path = "/api/v2/generate/text/status/x"
    native.script(f"{method} {path}", lost(), answer(200, {}))
    with running_front(tmp_path, f"{native.url},http://localhost:{native.port}", valkey.service.url, **QUICK) as twice:
        async with client.request(method, twice.url + path) as response:
            assert response.status == status
    assert len(native.calls(method, path)) == (2 if status == 200 else 1)


@pytest.mark.parametrize("path", ["/api/v2/status/heartbeat", POP, "/api/v2/generate/text/async"])
async def test_a_control_character_in_a_header_is_no_http(
    front: FrontProcess, native: ScriptedNative, path: str
) -> None:
    raw = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Odd: 1.1.1.1, \x7f\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    reader, writer = await asyncio.open_connection(URL(front.url).host, URL(front.url).port)
    writer.write(raw)
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 400")
    assert native.calls("POST", path) == []
