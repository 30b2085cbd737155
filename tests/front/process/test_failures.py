"""Every exit of a chat request but the answer (front F1, F5, details D4, D9)."""

import asyncio
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from app.domain.redis_keys import ChatEvent
from front.submission import TRIES
from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front
from tests.front.process.scripted_native import (
    STATUSES,
    SUBMIT,
    Received,
    Script,
    ScriptedNative,
    answer,
    generation_of,
    refusal,
)
from tests.front.process.waiting import eventually
from tests.support.services import RunningService, free_port

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"
STATUS = "/api/v2/generate/chat/status/"


def status_path(native: ScriptedNative) -> str:
    """The status path of this test's request; cancels of earlier tests may still come in."""
    return STATUS + native.calls("POST", SUBMIT)[0].headers["horde-request-id"]


def calls_again(front: FrontProcess) -> float:
    """How often the front called for a submit after the first call."""
    with urllib.request.urlopen(f"{front.url}/metrics", timeout=5) as response:  # noqa: S310 - a URL of ours
        found = re.search(r"^horde_front_submit_retries_total (\S+)$", response.read().decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


async def post(client: aiohttp.ClientSession, front: FrontProcess, body: Any = BODY) -> tuple[Any, dict[str, Any]]:
    async with client.post(front.url + PATH, json=body) as response:
        assert response.headers["content-type"] == "application/json"
        error = (await response.json())["error"]
    assert set(error) == {"message", "type", "param", "code", "metadata"}
    return response, error


def lost() -> Script:
    """The root takes the call and the connection breaks."""

    async def run(_received: Received, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    return run


def not_ours(status: int) -> Script:
    """Something in front of the root answers."""

    async def run(_received: Received, _request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="<html>bad gateway</html>", content_type="text/html")

    return run


@pytest.mark.parametrize(
    ("status", "rc", "seen_status", "seen_code"),
    [
        (401, "InvalidAPIKey", 401, "invalid_api_key"),
        (403, "KudosUpfront", 402, "KudosUpfront"),
        (403, "SharedKeyExpired", 402, "SharedKeyExpired"),
        (429, "TooManyPrompts", 429, "TooManyPrompts"),
        (400, "CorruptPrompt", 400, "CorruptPrompt"),
        (400, "KudosCapExceeded", 400, "KudosCapExceeded"),
        (403, "WrongCredentials", 403, "WrongCredentials"),
        (503, "storage_unavailable", 503, "storage_unavailable"),
        (500, "InternalError", 502, "InternalError"),
    ],
)
async def test_a_refusal_of_the_horde_keeps_its_code(
    front: FrontProcess,
    native: ScriptedNative,
    client: aiohttp.ClientSession,
    status: int,
    rc: str,
    seen_status: int,
    seen_code: str,
) -> None:
    native.script(f"POST {SUBMIT}", refusal(status, rc, "because", {"Retry-After": "90"}))
    response, error = await post(client, front)
    assert (response.status, error["code"]) == (seen_status, seen_code)
    assert error["type"] == ("server_error" if seen_status >= 500 else "invalid_request_error")
    assert response.headers["retry-after"] == "60"
    assert "x-should-retry" not in response.headers
    assert len(native.calls("POST", SUBMIT)) == 1


async def test_a_body_that_the_contract_refuses_never_goes_out(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    response, error = await post(client, front, {**BODY, "n": 2})
    assert (response.status, error["code"], error["param"]) == (400, "UnsupportedChatParameter", "n")
    assert native.calls("POST", SUBMIT) == []


async def test_a_model_that_nobody_serves_is_refused_with_close_names_and_what_is_online(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.models = [{"name": "demo-8b"}, {"name": "other-70b"}]
    native.script(f"POST {SUBMIT}", refusal(503, "no_eligible_worker", "No worker serves 'demo-9b'."))
    # The front keeps its list for a second; the one that it has may still be another test's.
    async with asyncio.timeout(5):
        while True:
            async with client.get(f"{front.url}/v1/models") as response:
                if len((await response.json())["data"]) == 2:
                    break
            await asyncio.sleep(0.1)
    response, error = await post(client, front, {**BODY, "model": "demo-9b"})
    assert (response.status, error["code"]) == (503, "no_eligible_worker")
    assert error["message"] == "No worker serves 'demo-9b'. Did you mean demo-8b? Online: demo-8b, other-70b."


@pytest.mark.parametrize("broken", [lost(), not_ours(502), answer(202, {"nothing": 1})], ids=["reset", "502", "odd"])
async def test_a_lost_submit_is_repeated_with_the_same_bytes_and_key(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession, broken: Script
) -> None:
    native.script(f"POST {SUBMIT}", broken)
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    first, second = await native.called("POST", SUBMIT, 2)
    assert first.body == second.body
    same = ("operation-key", "horde-request-id", "horde-deadline", "apikey")
    assert [first.headers[name] for name in same] == [second.headers[name] for name in same]
    request_id = second.headers["horde-request-id"]
    native.finish(request_id)
    signals.chat(request_id)
    async with await asking as response:
        assert response.status == 200


async def test_a_submit_that_stays_lost_is_cancelled_and_not_to_be_repeated(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.script(f"POST {SUBMIT}", lost(), lost(), lost())
    response, error = await post(client, front)
    assert (response.status, error["code"]) == (502, "HordeUnreachable")
    assert response.headers["x-should-retry"] == "false"
    assert len(native.calls("POST", SUBMIT)) == 3
    await native.called("DELETE", status_path(native))


async def test_a_refusal_after_a_lost_try_cancels_what_that_try_may_have_left(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.script(f"POST {SUBMIT}", lost(), refusal(429, "TooManyPrompts"))
    response, _ = await post(client, front)
    assert response.status == 429
    assert "x-should-retry" not in response.headers
    await native.called("DELETE", status_path(native))


async def test_a_horde_that_was_never_reached_leaves_the_retry_to_the_client(
    valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with running_front(tmp_path, nowhere, valkey.service.url, **QUICK) as front:
        response, error = await post(client, front)
        assert (response.status, error["code"]) == (502, "HordeUnreachable")
        assert "x-should-retry" not in response.headers


async def test_a_root_that_takes_no_connections_for_seconds_gets_the_request_when_it_is_back(
    valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    port = free_port()
    with running_front(tmp_path, f"http://127.0.0.1:{port}", valkey.service.url, **QUICK) as front:
        asking = asyncio.create_task(post(client, front))
        await eventually(lambda: calls_again(front) >= TRIES, "the front gives up", seconds=10)
        with ScriptedNative(port=port) as native:
            native.script(f"POST {SUBMIT}", refusal(429, "TooManyPrompts"))
            response, _ = await asking
    assert response.status == 429
    assert len(native.calls("POST", SUBMIT)) == 1


async def test_a_root_that_is_gone_is_passed_over(
    native: ScriptedNative, valkey: RunningService, signals: Signals, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    roots = f"http://127.0.0.1:{free_port()},{native.url}"
    with running_front(tmp_path, roots, valkey.service.url, **QUICK) as front:
        for _ in range(2):
            native.reset()
            asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
            request_id = await native.submitted()
            native.finish(request_id)
            signals.chat(request_id)
            async with await asking as response:
                assert response.status == 200


GAP = {"missing": [{"name": "tools", "workers": 0}]}
LIMIT = {"limit": "max_context_length", "asked": 9000, "largest": 4096}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("initial", "status", "code", "metadata"),
    [
        ({"declaration_gap": GAP}, 404, "no_worker_supports_features", GAP),
        ({"declaration_gap": GAP, "limits_gap": LIMIT}, 404, "no_worker_supports_features", GAP),
        ({"limits_gap": LIMIT}, 400, "no_worker_supports_limit", LIMIT),
    ],
)
async def test_a_gap_in_the_first_status_is_a_plain_error_and_cancels(
    front: FrontProcess,
    native: ScriptedNative,
    client: aiohttp.ClientSession,
    stream: bool,
    initial: dict[str, Any],
    status: int,
    code: str,
    metadata: dict[str, Any],
) -> None:
    native.initial = {**initial, "is_possible": False, "eligible_threads": 0}
    response, error = await post(client, front, {**BODY, "stream": stream})
    assert (response.status, error["code"], error["metadata"]) == (status, code, metadata)
    assert response.headers["x-should-retry"] == "false"
    await native.called("DELETE", status_path(native))
    assert native.calls("GET", status_path(native)) == []


async def test_a_context_that_is_too_long_is_said_in_the_words_that_agents_look_for(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.initial = {"limits_gap": LIMIT}
    _, error = await post(client, front)
    assert "maximum context length is 4096 tokens" in error["message"]


@pytest.mark.parametrize(
    ("initial", "retry_after"),
    [
        ({"eligible_threads": 0, "is_possible": False}, "30"),
        ({"queue_info_at": "2026-01-01T00:00:00Z", "wait_time": 40}, "40"),
    ],
)
async def test_fail_fast_is_refused_at_once_where_the_queue_is_known(
    front: FrontProcess,
    native: ScriptedNative,
    client: aiohttp.ClientSession,
    initial: dict[str, Any],
    retry_after: str,
) -> None:
    native.initial = initial
    response, error = await post(client, front, {**BODY, "horde": {"availability_mode": "fail_fast"}})
    assert (response.status, error["code"]) == (503, "queue_unavailable")
    assert response.headers["retry-after"] == retry_after
    await native.called("DELETE", status_path(native))
    assert native.calls("GET", status_path(native)) == []


async def test_fail_fast_looks_again_until_the_queue_is_known(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    asking = asyncio.create_task(post(client, front, {**BODY, "horde": {"availability_mode": "fail_fast"}}))
    request_id = await native.submitted()
    native.set_status(request_id, queue_info_at="2026-01-01T00:00:00Z", wait_time=500)
    response, error = await asking
    assert (response.status, error["code"]) == (503, "queue_unavailable")
    assert len(native.calls("GET", status_path(native))) == 1


async def test_a_request_that_stays_impossible_is_refused_after_the_grace(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    native.initial = {"is_possible": False, "eligible_threads": 0, "eligible_workers": 0}
    response, error = await post(client, front)
    assert (response.status, error["code"]) == (503, "no_eligible_worker")
    assert response.headers["x-should-retry"] == "false"
    assert len(native.calls("GET", status_path(native))) == 1
    await native.called("DELETE", status_path(native))


async def test_a_request_that_becomes_possible_within_the_grace_goes_on(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    native.initial = {"is_possible": False, "eligible_threads": 0}
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    request_id = await native.submitted()
    native.set_status(request_id)
    await native.called("GET", STATUS)
    native.finish(request_id)
    signals.chat(request_id)
    async with await asking as response:
        assert response.status == 200


async def test_the_deadline_ends_the_wait_and_cancels(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    response, error = await post(client, front)
    assert (response.status, error["code"]) == (408, "DeadlineExceeded")
    assert response.headers["x-should-retry"] == "false"
    assert len(native.calls("GET", status_path(native))) == 1
    await native.called("DELETE", status_path(native))


async def test_a_reply_whose_signal_was_lost_is_delivered_at_the_deadline(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    native.finish(await native.submitted())
    async with await asking as response:
        assert response.status == 200
    assert native.calls("DELETE", status_path(native)) == []


@pytest.mark.parametrize(
    ("ended", "status", "code"),
    [
        (
            {"state": "faulted", "fault": {"rc": "backend_error", "message": "it broke", "param": None}},
            502,
            "ChatRequestFaulted",
        ),
        ({"state": "done", "finished": 1}, 502, "NoGeneration"),
        ({"state": "cancelled"}, 502, "NoGeneration"),
        ({"state": "expired"}, 408, "DeadlineExceeded"),
    ],
)
async def test_a_request_that_ended_without_a_reply_is_said_so(
    front: FrontProcess,
    native: ScriptedNative,
    signals: Signals,
    client: aiohttp.ClientSession,
    ended: dict[str, Any],
    status: int,
    code: str,
) -> None:
    asking = asyncio.create_task(post(client, front))
    request_id = await native.submitted()
    native.set_status(request_id, **ended)
    signals.chat(request_id)
    response, error = await asking
    assert (response.status, error["code"]) == (status, code)
    assert response.headers["x-should-retry"] == "false"


async def test_a_status_that_cannot_be_read_is_read_again(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    native.script(f"GET {STATUS}", not_ours(503))
    native.script(f"POST {STATUSES}", answer(200, {"odd": True}))
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    request_id = await native.submitted()
    native.finish(request_id)
    signals.chat(request_id)
    async with await asking as response:
        assert response.status == 200
    assert len(native.calls("GET", status_path(native))) == 1
    assert len(native.calls("POST", STATUSES)) == 2


async def test_a_client_that_leaves_cancels_its_request(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    request_id = await native.submitted()
    asking.cancel()
    await native.called("DELETE", STATUS + request_id, seconds=2)


async def test_a_client_that_leaves_during_the_submit_cancels_it_once_it_is_known(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    release: list[Callable[[], object]] = []

    async def slow(received: Received, request: web.Request) -> web.StreamResponse:
        loop, gate = asyncio.get_running_loop(), asyncio.Event()
        release.append(lambda: loop.call_soon_threadsafe(gate.set))
        await gate.wait()
        return await native._accept(received)(received, request)

    native.script(f"POST {SUBMIT}", slow)
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    request_id = await native.submitted()
    asking.cancel()
    await native.called("DELETE", status_path(native))
    release[0]()
    await eventually(lambda: native.statuses.get(request_id, {}).get("state") == "cancelled", "it is not cancelled")


async def test_images_are_waited_for_before_any_header(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    native.initial = {"state": "preparing"}
    asking = asyncio.create_task(post(client, front, {**BODY, "stream": True}))
    request_id = await native.submitted()
    native.set_status(request_id, limits_gap=LIMIT)
    signals.chat(request_id, ChatEvent.QUEUED)
    response, error = await asking
    assert (response.status, error["code"]) == (400, "no_worker_supports_limit")


async def test_entering_the_queue_is_no_news_to_a_request_without_images(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    request_id = await native.submitted()
    signals.chat(request_id, ChatEvent.QUEUED)
    native.finish(request_id, message=generation_of()["message"])
    signals.chat(request_id)
    async with await asking as response:
        assert response.status == 200
    assert len(native.calls("GET", status_path(native))) == 1
