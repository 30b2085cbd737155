"""The kinds of backend: each is recognised by its own routes, and tells its context and its counts."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tools.chat_worker_example.backend import Backend, BackendError, BackendUnreachable
from tools.chat_worker_example.backends import KINDS, connect
from tools.chat_worker_example.config import BACKEND_KINDS

Json = dict[str, Any]
Served = tuple[aiohttp.ClientSession, str, list[Json]]
CALL: Json = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function"}]}


def listing(owner: str, **extra: Any) -> Json:
    return {"data": [{"id": "m", "owned_by": owner, **extra}]}


SERVERS: dict[str, dict[str, Json]] = {
    "llama.cpp": {
        "/v1/models": listing("llamacpp"),
        "/props": {"default_generation_settings": {"n_ctx": 4096}},
        "/apply-template": {"prompt": "rendered"},
        "/tokenize": {"tokens": [1, 2, 3]},
    },
    "vllm": {"/v1/models": listing("vllm", max_model_len=8192), "/tokenize": {"tokens": [1, 2, 3, 4], "count": 4}},
    "koboldcpp": {
        "/v1/models": listing("koboldcpp"),
        "/api/extra/version": {"result": "KoboldCpp", "version": "1.100"},
        "/api/extra/true_max_context_length": {"value": 6144},
        "/api/version": {"version": "0.7.0"},
        "/api/ps": {"models": []},
    },
    "tabbyapi": {
        "/v1/models": listing("tabbyAPI"),
        "/v1/model": {"id": "m", "parameters": {"max_seq_len": 2048}},
        "/v1/token/encode": {"tokens": [1, 2], "length": 2},
    },
    "ollama": {
        "/v1/models": listing("library"),
        "/api/version": {"version": "0.12.0"},
        "/api/ps": {"models": [{"name": "other", "context_length": 9}, {"name": "m", "context_length": 4096}]},
    },
    "openai": {"/v1/models": listing("somebody", max_model_len=512)},
}
CONTEXTS = {"llama.cpp": 4096, "vllm": 8192, "koboldcpp": 6144, "tabbyapi": 2048, "ollama": 4096, "openai": 512}
COUNTS = {"llama.cpp": 3, "vllm": 4, "tabbyapi": 2}


@asynccontextmanager
async def serving(
    routes: dict[str, Json], status: int = 200
) -> AsyncIterator[tuple[aiohttp.ClientSession, str, list[Json]]]:
    """A server of these answers; what it was asked is remembered."""
    asked: list[Json] = []

    async def answer(request: web.Request) -> web.Response:
        if request.can_read_body:
            asked.append(await request.json())
        known = routes.get(request.path)
        return web.json_response(known or {}, status=404 if known is None else status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    listener = socket.create_server(("127.0.0.1", 0))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        async with aiohttp.ClientSession() as session:
            yield session, f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("kind", SERVERS)
async def test_each_kind_is_recognised_and_tells_what_it_has(kind: str) -> None:
    async with serving(SERVERS[kind]) as (session, url, asked):
        backend = await connect(session, url)
        assert backend.kind == kind
        assert await backend.context("m") == CONTEXTS[kind]
        if kind in COUNTS:
            assert await backend.count_tokens(CALL) == COUNTS[kind]
            assert asked
        else:
            with pytest.raises(BackendError, match="no counter"):
                await backend.count_tokens(CALL)


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_operator_may_name_the_kind(kind: str) -> None:
    async with serving({}) as (session, url, _):
        assert (await connect(session, url, kind)).kind == kind


def test_every_kind_can_be_named() -> None:
    assert {"auto", Backend.kind, *(kind.kind for kind in KINDS)} == set(BACKEND_KINDS)


async def test_vllm_is_asked_to_count_the_tools_too() -> None:
    async with serving(SERVERS["vllm"]) as (session, url, asked):
        await (await connect(session, url)).count_tokens(CALL)
    assert asked == [CALL]


@pytest.mark.parametrize(
    ("kind", "path", "broken"),
    [
        ("llama.cpp", "/props", {"default_generation_settings": {"n_ctx": 0}}),
        ("llama.cpp", "/props", {"default_generation_settings": None}),
        ("vllm", "/v1/models", listing("vllm", max_model_len="many")),
        ("koboldcpp", "/api/extra/true_max_context_length", {"value": True}),
        ("tabbyapi", "/v1/model", {"parameters": []}),
        ("ollama", "/api/ps", {"models": [None, {"name": "m"}]}),
    ],
)
async def test_a_context_that_makes_no_sense_is_unknown(kind: str, path: str, broken: Json) -> None:
    async with serving(SERVERS[kind] | {path: broken}) as (session, url, _):
        assert await (await connect(session, url, kind)).context("m") is None


async def test_a_counter_that_answers_without_tokens_has_counted_nothing() -> None:
    async with serving(SERVERS["vllm"] | {"/tokenize": {"count": 4}}) as (session, url, _):
        with pytest.raises(BackendError, match="without tokens"):
            await (await connect(session, url)).count_tokens(CALL)


async def test_a_server_that_still_loads_is_not_taken_for_another_kind() -> None:
    async with serving(SERVERS["llama.cpp"], status=503) as (session, url, _):
        with pytest.raises(BackendError, match="503"):
            await connect(session, url)


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(BackendUnreachable):
            await connect(session, "http://127.0.0.1:9")
