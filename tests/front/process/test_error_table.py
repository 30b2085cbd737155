"""Every error that a client can get, with its exact body and headers (front F5, details D3, D4, D9)."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front
from tests.front.process.scripted_native import SUBMIT, Script, ScriptedNative, answer
from tests.front.process.test_failures import not_ours
from tests.front.process.waiting import eventually
from tests.support.services import RunningService

PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
FAIL_FAST = BODY | {"horde": {"availability_mode": "fail_fast"}}
NOT_AGAIN = "false"
GAP = {"missing": [{"name": "tools", "workers": 0}, {"name": "json_object", "workers": 2}]}
GUARANTEES = {"missing": [{"name": "single_tool_call_enforced", "workers": 1}]}
CONTEXT = {"limit": "max_context_length", "asked": 9000, "largest": 4096}
LENGTH = {"limit": "max_length", "asked": 2000, "largest": 512}


@dataclass(frozen=True)
class Case:
    """What happens, and what the client then gets."""

    name: str
    status: int
    code: str
    message: str
    param: str | None = None
    metadata: dict[str, Any] | None = None
    retry_after: str | None = None
    should_retry: str | None = None
    body: Any = field(default_factory=lambda: BODY)
    headers: dict[str, str] = field(default_factory=dict)
    submit: tuple[Script, ...] = ()
    initial: dict[str, Any] = field(default_factory=dict)
    later: dict[str, Any] | None = None

    @property
    def envelope(self) -> dict[str, Any]:
        """The whole body."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        keys = ("message", "type", "param", "code", "metadata")
        return {"error": dict(zip(keys, (self.message, kind, self.param, self.code, self.metadata), strict=True))}


def refused(status: int, rc: str, **more: Any) -> tuple[Script, ...]:
    """A refusal of the native API's, which asks for an hour's pause."""
    return (answer(status, {"message": "Because.", "rc": rc, "param": None, "metadata": None} | more, PAUSE),)


PAUSE = {"Retry-After": "3600"}


def kept(name: str, native: int, rc: str, status: int, code: str | None = None, **more: Any) -> Case:
    """A native refusal, whose words, param and metadata are kept."""
    return Case(name, status, code or rc, "Because.", submit=refused(native, rc), retry_after="60", **more)


NATIVE = [
    kept("kudos", 403, "KudosUpfront", 402),
    kept("shared key empty", 403, "SharedKeyEmpty", 402),
    kept("shared key expired", 403, "SharedKeyExpired", 402),
    kept("shared key short", 403, "SharedKeyInsufficientKudos", 402),
    kept("too many", 429, "TooManyPrompts", 429),
    kept("filtered", 400, "CorruptPrompt", 400),
    kept("too dear", 400, "KudosCapExceeded", 400),
    kept("deleted account", 403, "DeletedUser", 403),
    kept("banned account", 403, "UserBanned", 403),
    kept("banned network", 403, "AddressBanned", 403),
    kept("another's", 403, "WrongCredentials", 403),
    kept("an operation key used for another body", 409, "OperationKeyMismatch", 409, should_retry=NOT_AGAIN),
    kept("no store", 503, "storage_unavailable", 503),
    kept("no database", 503, "service_unavailable", 503),
    kept("maintenance", 503, "MaintenanceMode", 503),
    kept("native too large", 413, "PayloadTooLarge", 413),
    kept("native defect", 500, "InternalError", 502),
    Case(
        "param and metadata",
        400,
        "invalid_value",
        "Because.",
        param="messages[0].content",
        metadata={"a": 1},
        retry_after="60",
        submit=refused(400, "invalid_value", param="messages[0].content", metadata={"a": 1}),
    ),
    Case(
        "bad key",
        401,
        "invalid_api_key",
        "Incorrect API key provided. Send a key of this horde as 'Authorization: Bearer <key>', "
        "or leave the header out to ask anonymously.",
        retry_after="60",
        submit=refused(401, "InvalidAPIKey"),
    ),
    Case(
        "nobody serves the model",
        503,
        "no_eligible_worker",
        "Because. Online: demo-8b.",
        retry_after="60",
        submit=refused(503, "no_eligible_worker"),
    ),
    Case(
        "unknown model",
        404,
        "model_not_found",
        "Because. Did you mean demo-8b? Online: demo-8b.",
        body=BODY | {"model": "demo-9b"},
        retry_after="60",
        submit=refused(404, "model_not_found"),
    ),
    Case(
        "no root in its right mind",
        502,
        "HordeUnreachable",
        "The horde cannot be reached right now. Try again in a minute.",
        should_retry=NOT_AGAIN,
        submit=(not_ours(502),) * 3,
    ),
]

OWN = [
    Case("unknown parameter", 400, "UnsupportedChatParameter", "Unknown parameter: 'foo'.",
         param="foo", body=BODY | {"foo": 1}),
    Case("no model", 400, "invalid_request", "you must provide a model parameter", body={"messages": []}),
    Case(
        "colon",
        404,
        "model_not_found",
        "The model `a:b` does not exist or you do not have access to it. Online: demo-8b.",
        body=BODY | {"model": "a:b"},
    ),
    Case(
        "no key",
        401,
        "invalid_api_key",
        "Incorrect API key provided. Send a key of this horde as 'Authorization: Bearer <key>', "
        "or leave the header out to ask anonymously.",
        headers={"Authorization": "Basic x"},
    ),
    Case("too large", 413, "PayloadTooLarge",
         "The request body is larger than 100000 bytes. Send a shorter conversation.",
         body=BODY | {"user": "x" * 120_000}),
    Case("too large with images", 413, "PayloadTooLarge",
         "The request body is larger than 150000 bytes. Send a shorter conversation.",
         body=BODY | {"user": "x" * 170_000}),
    Case("compressed", 415, "UnsupportedContentEncoding",
         "Content-Encoding 'br' is not supported. Send the body as it is.", headers={"Content-Encoding": "br"}),
]  # fmt: skip

STATUSES = [
    Case(
        "declaration gap",
        404,
        "no_worker_supports_features",
        "No online worker of this model supports everything that the request needs: tools (declared by 0 workers), "
        "json_object (declared by 2 workers). Leave the feature out, or choose another model.",
        metadata=GAP,
        should_retry=NOT_AGAIN,
        initial={"declaration_gap": GAP, "is_possible": False},
    ),
    Case(
        "guarantees gap",
        404,
        "no_worker_supports_features",
        "No online worker of this model supports everything that the request needs: single_tool_call_enforced "
        "(declared by 1 workers). Set horde.conformance to 'best_effort' to do without, or choose another model.",
        metadata=GUARANTEES,
        should_retry=NOT_AGAIN,
        initial={"declaration_gap": GUARANTEES},
    ),
    Case(
        "context gap",
        400,
        "no_worker_supports_limit",
        "This model's maximum context length is 4096 tokens. However, the request needs 9000 tokens. Shorten the "
        "messages, lower max_tokens, or set horde.context_fit to 'truncate_oldest' to drop the oldest.",
        metadata=CONTEXT,
        should_retry=NOT_AGAIN,
        initial={"limits_gap": CONTEXT},
    ),
    Case(
        "limits gap",
        400,
        "no_worker_supports_limit",
        "No online worker of this model takes max_length 2000; the largest declared is 512.",
        metadata=LENGTH,
        should_retry=NOT_AGAIN,
        initial={"limits_gap": LENGTH},
    ),
    Case(
        "fail fast, no thread",
        503,
        "queue_unavailable",
        "No eligible worker thread is online and the request asked to fail fast. Try again later.",
        retry_after="30",
        should_retry=NOT_AGAIN,
        body=FAIL_FAST,
        initial={"eligible_threads": 0},
    ),
    Case(
        "fail fast, long wait",
        503,
        "queue_unavailable",
        "The estimated wait is 500 seconds, more than the request may take, and it asked to fail fast. "
        "Try again later.",
        retry_after="60",
        should_retry=NOT_AGAIN,
        body=FAIL_FAST,
        initial={"queue_info_at": "2026-01-01T00:00:00Z", "wait_time": 500},
    ),
    Case(
        "grace",
        503,
        "no_eligible_worker",
        "No eligible worker came online within 1 seconds; the request was cancelled. "
        "Loosen the worker selection in 'horde', or try again later.",
        retry_after="30",
        should_retry=NOT_AGAIN,
        initial={"is_possible": False, "eligible_threads": 0},
    ),
    Case(
        "deadline",
        408,
        "DeadlineExceeded",
        "No worker delivered the reply within 4 seconds; the request was cancelled. "
        "Ask for fewer tokens or for a model with more workers.",
        should_retry=NOT_AGAIN,
    ),
    Case(
        "faulted",
        502,
        "ChatRequestFaulted",
        "The request was given up: it broke",
        metadata={"rc": "backend_error"},
        should_retry=NOT_AGAIN,
        later={"state": "faulted", "fault": {"rc": "backend_error", "message": "it broke", "param": None}},
    ),
    Case(
        "faulted for no reason told",
        502,
        "ChatRequestFaulted",
        "The request was given up: the workers that tried could not serve it",
        should_retry=NOT_AGAIN,
        later={"state": "faulted", "fault": None},
    ),
    Case(
        "done without a generation",
        502,
        "NoGeneration",
        "The request ended without a reply: no worker delivered one. Send it again.",
        should_retry=NOT_AGAIN,
        later={"state": "done", "finished": 1},
    ),
    Case(
        "cancelled by somebody else",
        502,
        "NoGeneration",
        "The request ended without a reply: it was cancelled. Send it again.",
        should_retry=NOT_AGAIN,
        later={"state": "cancelled"},
    ),
]


async def forget_other_models(client: aiohttp.ClientSession, front: FrontProcess) -> None:
    """Wait until the front knows the models of these tests alone: it remembers those of others for a second."""
    async with asyncio.timeout(5):
        while True:
            async with client.get(f"{front.url}/v1/models") as response:
                if [model["id"] for model in (await response.json())["data"]] == ["demo-8b"]:
                    return
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("case", [*NATIVE, *OWN, *STATUSES], ids=lambda case: case.name)
async def test_an_error_has_its_exact_body_and_headers(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession, case: Case
) -> None:
    await forget_other_models(client, front)
    native.script(f"POST {SUBMIT}", *case.submit)
    native.initial = case.initial
    asking = asyncio.create_task(
        client.post(front.url + PATH, json=case.body, headers={"X-Request-Id": "mine-1", **case.headers})
    )
    if case.later is not None:
        request_id = await native.submitted()
        native.set_status(request_id, **case.later)
        signals.chat(request_id)
    async with await asking as response:
        assert (response.status, await response.json()) == (case.status, case.envelope)
    told = {name: response.headers.get(name) for name in ("retry-after", "x-should-retry", "x-request-id")}
    assert told == {"retry-after": case.retry_after, "x-should-retry": case.should_retry, "x-request-id": "mine-1"}
    assert response.headers["content-type"] == "application/json"
    assert response.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("route", ["responses", "completions", "embeddings", "audio/speech", "moderations", "files"])
async def test_another_route_of_openais_names_chat_completions(
    front: FrontProcess, client: aiohttp.ClientSession, route: str
) -> None:
    async with client.post(f"{front.url}/v1/{route}", json={}) as response:
        assert response.status == 404
        assert await response.json() == {
            "error": {
                "message": f"Invalid URL (POST /v1/{route}). This horde answers POST /v1/chat/completions, "
                "GET /v1/models and GET /v1/models/{id}; ask with chat completions.",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_request",
                "metadata": None,
            }
        }


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", PATH, "OPTIONS, POST"), ("POST", "/v1/models", "GET, HEAD, OPTIONS"), ("PUT", "/healthz", "GET, HEAD")],
)
async def test_a_wrong_method_is_told_which_are_right(
    front: FrontProcess, client: aiohttp.ClientSession, method: str, path: str, allowed: str
) -> None:
    async with client.request(method, front.url + path) as response:
        assert response.status == 405
        assert response.headers["allow"].startswith(allowed)
        assert (await response.json())["error"]["message"] == f"Invalid method for URL ({method} {path})."


@pytest.mark.parametrize("path", ["/", "/v1/models", "/healthz"])
async def test_a_head_is_answered_as_a_get_without_its_body(
    front: FrontProcess, client: aiohttp.ClientSession, path: str
) -> None:
    async with client.head(front.url + path) as response:
        assert (response.status, await response.read()) == (200, b"")


AT_CAPACITY = {
    "error": {
        "message": "Too many open requests from your address or key. Wait for one of them to end, then try again.",
        "type": "server_error",
        "param": None,
        "code": "FrontAtCapacity",
        "metadata": None,
    }
}


async def test_a_source_at_its_cap_is_told_so_in_the_envelope(
    native: ScriptedNative, valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = QUICK | {"FRONT_SOURCE_LIMIT": "1", "DEFAULT_DEADLINE_SECONDS": "60"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        first = asyncio.create_task(client.post(front.url + PATH, json=BODY))
        await native.submitted()
        async with client.post(front.url + PATH, json=BODY) as response:
            assert (response.status, await response.json()) == (503, AT_CAPACITY)
        assert response.headers["retry-after"] == "5"
        assert "x-should-retry" not in response.headers
        first.cancel()
        await asyncio.wait((first,))


async def test_a_body_that_does_not_come_is_told_so_in_the_envelope(front: FrontProcess) -> None:
    host, _, port = front.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: horde\r\nContent-Length: 100\r\n\r\n{{".encode())
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head.lower()).group(1))  # type: ignore[union-attr]
        body = orjson.loads(await reader.readexactly(length))
    writer.close()
    await writer.wait_closed()
    assert head.startswith(b"HTTP/1.1 408 ")
    assert body == {
        "error": {
            "message": "The request body did not arrive within 1 seconds. Send it again.",
            "type": "invalid_request_error",
            "param": None,
            "code": "BodyTooSlow",
            "metadata": None,
        }
    }


async def test_a_newcomer_at_a_front_that_stops_is_told_so_in_the_envelope(
    native: ScriptedNative, valkey: RunningService, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = QUICK | {"DRAIN_SECONDS": "20", "DEFAULT_DEADLINE_SECONDS": "60"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        open_still = asyncio.create_task(client.post(front.url + PATH, json=BODY))
        await native.submitted()
        front.terminate()
        await eventually(lambda: "stopping" in front.log.read_text(), "the front does not stop")
        async with client.post(front.url + PATH, json=BODY) as response:
            assert response.status == 503
            assert await response.json() == {
                "error": {
                    "message": "This server is restarting. Try again in a few seconds.",
                    "type": "server_error",
                    "param": None,
                    "code": "service_unavailable",
                    "metadata": None,
                }
            }
        open_still.cancel()
        await asyncio.wait((open_still,))
