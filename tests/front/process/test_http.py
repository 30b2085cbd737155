"""The HTTP layer of the real front: paths, preflights, bodies, caps, models, health."""

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import psutil
import pytest
from yarl import URL

from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front
from tests.front.process.scripted_native import SUBMIT, ScriptedNative
from tests.front.process.waiting import eventually
from tests.support.services import RunningService

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"


@pytest.mark.parametrize(
    "path",
    ["/v1//chat/completions", "/v1/chat/completions/", "/chat/completions", "/v1/v1/chat/completions"],
)
async def test_common_slips_in_the_path_are_served(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession, path: str
) -> None:
    asking = asyncio.create_task(client.post(front.url + path, json=BODY, allow_redirects=False))
    request_id = await native.submitted()
    native.finish(request_id)
    signals.chat(request_id)
    async with await asking as response:
        assert response.status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/responses", 404),
        ("POST", "/v1/completions", 404),
        ("GET", "/v1", 404),
        ("GET", "/nothing/here", 404),
        ("GET", PATH, 405),
        ("DELETE", "/v1/models", 405),
        ("PROPFIND", "/v1/models", 405),
        ("GET", "/internal/status", 404),
        ("GET", "/flower", 404),
    ],
)
async def test_a_wrong_path_or_method_is_said_in_the_envelope(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, method: str, path: str, status: int
) -> None:
    async with client.request(method, front.url + path) as response:
        assert response.status == status
        assert "x-request-id" in response.headers
        error = (await response.json())["error"]
    assert set(error) == {"message", "type", "param", "code", "metadata"}
    if status == 404:
        assert "POST /v1/chat/completions" in error["message"]
    assert [call for call in native.received if call.path == path] == []


@pytest.mark.parametrize("path", [PATH, "/v1/models/x", "/nothing", "/api/v2/generate/text/pop"])
async def test_a_preflight_is_answered_without_a_key(
    front: FrontProcess, client: aiohttp.ClientSession, path: str
) -> None:
    headers = {
        "Origin": "https://page.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, x-stainless-os",
    }
    async with client.options(front.url + path, headers=headers) as response:
        assert response.status == 204
        assert response.headers["access-control-allow-origin"] == "*"
        assert response.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
        assert "POST" in response.headers["access-control-allow-methods"]


async def test_an_error_can_be_read_by_a_page_of_another_origin(
    front: FrontProcess, client: aiohttp.ClientSession
) -> None:
    async with client.post(front.url + PATH, data=b"{", headers={"Origin": "https://page.example"}) as response:
        assert response.status == 400
        assert response.headers["access-control-allow-origin"] == "*"
        assert "x-request-id" in response.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"null", b"5", b"[]", b'{"model": NaN}', b'{"a":"\xff"}', b'{"a":"\\ud800"}', b"[" * 5000, b"\x00"],
)
async def test_a_body_that_is_no_json_object_is_refused_in_the_envelope(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, raw: bytes
) -> None:
    async with client.post(front.url + PATH, data=raw) as response:
        assert response.status == 400
        assert (await response.json())["error"]["type"] == "invalid_request_error"
    assert native.calls("POST", SUBMIT) == []


async def test_a_compressed_body_is_refused(front: FrontProcess, client: aiohttp.ClientSession) -> None:
    async with client.post(front.url + PATH, data=b"x", headers={"Content-Encoding": "gzip"}) as response:
        assert response.status == 415


@pytest.mark.parametrize("header", ["Basic Og==", "Bearer a key", "Bearer \u00e9", "k" * 30])
async def test_what_cannot_be_a_key_is_a_bad_key(
    front: FrontProcess, client: aiohttp.ClientSession, header: str
) -> None:
    async with client.post(front.url + PATH, json=BODY, headers={"Authorization": header}) as response:
        assert response.status == 401
        assert (await response.json())["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_above_the_limit_is_told_so(
    front: FrontProcess, client: aiohttp.ClientSession, chunked: bool
) -> None:
    async def pieces() -> Any:
        for _ in range(30):
            yield b"x" * 10_000

    data: Any = pieces() if chunked else b"x" * 300_000
    async with client.post(front.url + PATH, data=data) as response:
        assert response.status == 413
        assert (await response.json())["error"]["code"] == "PayloadTooLarge"


async def test_a_body_that_does_not_come_is_told_so(front: FrontProcess) -> None:
    host, port = URL(front.url).host, URL(front.url).port
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"code":"BodyTooSlow"' in answer
    writer.close()


@pytest.mark.parametrize(
    "target", [b"?x=1", b"*", b"http://evil/v1/nope", b"http://evil]v1/models", b"//v1/nope", b"/%ff/%00/..%2f"]
)
async def test_odd_request_targets_get_an_answer(front: FrontProcess, target: bytes) -> None:
    reader, writer = await asyncio.open_connection(URL(front.url).host, URL(front.url).port)
    writer.write(b"POST " + target + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 404", b"HTTP/1.1 405"}
    writer.close()


async def test_a_request_id_of_a_proxy_is_kept_and_a_forged_one_is_not(
    front: FrontProcess, client: aiohttp.ClientSession
) -> None:
    async with client.get(f"{front.url}/healthz", headers={"X-Request-Id": "abc-1"}) as response:
        assert response.headers["x-request-id"] == "abc-1"
    async with client.get(f"{front.url}/healthz", headers={"X-Request-Id": "<b>"}) as response:
        assert response.headers["x-request-id"].startswith("req_")


async def test_a_source_with_too_many_open_requests_is_told_to_wait(
    front: FrontProcess, native: ScriptedNative
) -> None:
    limit = int(QUICK["FRONT_SOURCE_LIMIT"])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        waiting = [asyncio.create_task(client.post(front.url + PATH, json=BODY)) for _ in range(limit)]
        await native.called("POST", SUBMIT, limit)
        async with client.post(front.url + PATH, json=BODY) as response:
            assert response.status == 503
            assert (await response.json())["error"]["code"] == "FrontAtCapacity"
            assert 1 <= int(response.headers["retry-after"]) <= 60
            assert "x-should-retry" not in response.headers
        for task in waiting:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*waiting)
        await eventually(lambda: len(native.cancelled()) == limit, "some are left in the queue")
        async with client.post(front.url + PATH, data=b"{") as response:
            assert response.status == 400


async def test_a_key_that_the_horde_accepted_is_a_source_of_its_own(
    native: ScriptedNative, valkey: RunningService, signals: Signals, tmp_path: Path
) -> None:
    settings = {**QUICK, "FRONT_SOURCE_LIMIT": "1"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        async with aiohttp.ClientSession() as client:
            known = {"Authorization": "Bearer a-known-key"}
            asking = asyncio.create_task(client.post(front.url + PATH, json=BODY, headers=known))
            request_id = await native.submitted()
            native.finish(request_id)
            signals.chat(request_id)
            async with await asking as response:
                assert response.status == 200
            waiting = asyncio.create_task(client.post(front.url + PATH, json=BODY))
            await native.called("POST", SUBMIT, 2)
            async with client.post(front.url + PATH, json=BODY) as response:
                assert response.status == 503
            beside = asyncio.create_task(client.post(front.url + PATH, json=BODY, headers=known))
            await native.called("POST", SUBMIT, 3)
            for task in (waiting, beside):
                task.cancel()


@pytest.mark.parametrize("path", ["org/name", "org%2Fname"])
async def test_a_model_is_found_by_its_id_with_a_slash(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, path: str
) -> None:
    native.models = [{"name": "org/name", "workers": 2, "threads": 3, "features": ["tools"]}]
    shown: dict[str, Any] = {}

    async def read() -> None:
        async with client.get(URL(f"{front.url}/v1/models/{path}", encoded=True)) as response:
            shown.update(await response.json())

    async with asyncio.timeout(5):
        while "id" not in shown:
            await read()
            await asyncio.sleep(0.1)
    assert (shown["id"], shown["object"], shown["owned_by"]) == ("org/name", "model", "horde")
    assert isinstance(shown["created"], int)
    assert shown["x_horde"] == {"workers": 2, "threads": 3, "features": ["tools"]}


async def test_many_readers_of_the_models_cost_the_horde_one_read(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    async def read() -> None:
        async with client.get(f"{front.url}/v1/models") as response:
            assert response.status == 200
            assert (await response.json())["object"] == "list"

    await asyncio.gather(*(read() for _ in range(20)))
    assert len(native.calls("GET", "/api/v2/generate/chat/models")) <= 1


async def test_an_unknown_model_is_not_found(front: FrontProcess, client: aiohttp.ClientSession) -> None:
    async with client.get(f"{front.url}/v1/models/nobody") as response:
        assert response.status == 404
        assert (await response.json())["error"]["code"] == "model_not_found"


async def test_readiness_names_the_service_that_is_missing(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with client.get(f"{front.url}/readyz") as response:
        assert response.status == 200
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"redis://127.0.0.1:{closed.getsockname()[1]}/0"
        with running_front(tmp_path, native.url, nowhere, **QUICK) as lonely:
            async with client.get(f"{lonely.url}/readyz") as response:
                assert response.status == 503
                assert (await response.json())["unreachable"] == ["redis"]


async def test_metrics_count_chat_requests(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    request_id = await native.submitted()
    native.finish(request_id)
    signals.chat(request_id)
    async with await asking:
        pass
    async with client.get(f"{front.url}/metrics") as response:
        text = await response.text()
    assert 'horde_front_requests_total{outcome="answered"}' in text
    assert 'horde_front_signals_total{channel="chat"}' in text


async def test_the_page_says_how_to_point_a_client_here(front: FrontProcess, client: aiohttp.ClientSession) -> None:
    async with client.get(front.url + "/") as response:
        assert response.content_type == "text/html"
        assert f"{front.url}/v1/chat/completions" in await response.text()
    async with client.get(front.url + "/", headers={"Host": "<script>"}) as response:
        assert "<script>" not in await response.text()


async def test_no_key_and_no_prompt_is_logged(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    body = {**BODY, "messages": [{"role": "user", "content": "a-secret-prompt"}]}
    headers = {"Authorization": "Bearer a-secret-key"}
    asking = asyncio.create_task(client.post(front.url + PATH, json=body, headers=headers))
    request_id = await native.submitted()
    asking.cancel()
    await native.called("DELETE", f"/api/v2/generate/chat/status/{request_id}")
    assert "a-secret" not in front.log.read_text()


async def test_the_access_log_tells_what_was_asked_and_nothing_that_could_be_a_key(
    front: FrontProcess, client: aiohttp.ClientSession
) -> None:
    path = "/api/v2/sharedkeys/a-secret-key-of-22-char"
    headers = {"X-Request-Id": "logged-1", "apikey": "a-secret-key"}
    async with client.get(f"{front.url}{path}?apikey=a-secret-query", headers=headers) as response:
        assert response.status == 404

    def lines() -> list[dict[str, Any]]:
        return [line for line in map(orjson.loads, front.log.read_bytes().splitlines()) if "call_id" in line]

    await eventually(lambda: any(line["call_id"] == "logged-1" for line in lines()), "nothing is logged")
    line = next(line for line in lines() if line["call_id"] == "logged-1")
    assert (line["event"], line["method"], line["status"]) == ("request", "GET", 404)
    assert line["path"] == "/api/v2/sharedkeys/..."
    assert line["seconds"] >= 0
    assert "a-secret" not in front.log.read_text()


async def test_a_client_that_leaves_behind_a_pipelined_byte_cancels_its_request(
    front: FrontProcess, native: ScriptedNative
) -> None:
    _, writer = await asyncio.open_connection(URL(front.url).host, URL(front.url).port)
    body = orjson.dumps(BODY)
    writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (PATH.encode(), len(body)))
    writer.write(body + b"G")
    request_id = await native.submitted()
    writer.close()
    await native.called("DELETE", f"/api/v2/generate/chat/status/{request_id}", seconds=2)


async def test_pipelined_requests_are_answered_in_turn(
    front: FrontProcess, native: ScriptedNative, signals: Signals
) -> None:
    reader, writer = await asyncio.open_connection(URL(front.url).host, URL(front.url).port)
    body = orjson.dumps(BODY)
    first = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (PATH.encode(), len(body)) + body
    second = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    writer.write(first + second[:9])
    request_id = await native.submitted()
    writer.write(second[9:])
    native.finish(request_id)
    signals.chat(request_id)
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b"chatcmpl-") < answer.index(b'"alive"')
    writer.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"NOT HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_in_the_envelope(front: FrontProcess, raw: bytes) -> None:
    reader, writer = await asyncio.open_connection(URL(front.url).host, URL(front.url).port)
    writer.write(raw)
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer[:11] == b"HTTP/1.1 4" + answer[10:11]
    assert b'"type":"invalid_request_error"' in answer
    writer.close()


async def test_a_connection_whose_client_has_left_is_closed_at_once(front: FrontProcess) -> None:
    process = psutil.Process(front.process.pid)
    opened = [await asyncio.open_connection(URL(front.url).host, URL(front.url).port) for _ in range(30)]
    for number, (reader, writer) in enumerate(opened):
        if number % 3 == 0:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"alive")
        elif number % 3 == 1:
            writer.write(b"GET /hea")
    await eventually(lambda: process.num_fds() >= 30, "the connections are not there")
    before = process.num_fds()
    for _, writer in opened:
        writer.close()
    await eventually(lambda: process.num_fds() <= before - 30, "connections stay open", 5)
