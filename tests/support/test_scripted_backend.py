"""The scripted backend does what its markers say."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.scripted_backend import BackendShape, ScriptedBackend, instance_of, running_backend

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string", "enum": ["x", "y"]}},
            "required": ["a", "b"],
        },
    },
}


@pytest.fixture
async def backend() -> AsyncIterator[ScriptedBackend]:
    async with running_backend(BackendShape(context=200)) as backend:
        yield backend


async def ask(backend: ScriptedBackend, text: str, **fields: Any) -> tuple[int, Any]:
    body = {"messages": [{"role": "user", "content": text}], **fields}
    async with aiohttp.ClientSession() as session, session.post(f"{backend.url}/v1/chat/completions", json=body) as got:
        return got.status, await got.json() if got.status == 200 else None


async def test_the_last_user_message_comes_back_without_its_markers(backend: ScriptedBackend) -> None:
    status, reply = await ask(backend, "hello [[reasoning=why]]there")
    assert status == 200
    assert reply["choices"][0]["message"] == {
        "role": "assistant",
        "content": "hello there",
        "reasoning_content": "why",
    }


async def test_usage_agrees_with_the_counter_routes(backend: ScriptedBackend) -> None:
    _, reply = await ask(backend, "count me")
    async with aiohttp.ClientSession() as session:
        body = {"messages": [{"role": "user", "content": "count me"}]}
        async with session.post(f"{backend.url}/apply-template", json=body) as rendered:
            text = (await rendered.json())["prompt"]
        async with session.post(f"{backend.url}/tokenize", json={"content": text, "add_special": True}) as counted:
            tokens = (await counted.json())["tokens"]
    assert reply["usage"]["prompt_tokens"] == len(tokens)


@pytest.mark.parametrize(
    ("marker", "fields", "function"),
    [
        ("", {"tools": [TOOL], "tool_choice": "required"}, {"name": "add", "arguments": '{"a":0,"b":"x"}'}),
        ("[[tool_call]]", {"tools": [TOOL]}, {"name": "add", "arguments": '{"a":0,"b":"x"}'}),
        ("[[unknown_function]]", {"tools": [TOOL]}, {"name": "no_such_function", "arguments": "{}"}),
    ],
)
async def test_calls_are_made_when_forced_or_marked(
    backend: ScriptedBackend, marker: str, fields: dict[str, Any], function: dict[str, str]
) -> None:
    _, reply = await ask(backend, marker, **fields)
    assert reply["choices"][0]["message"]["tool_calls"][0]["function"] == function
    assert reply["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_prompt_beyond_the_context_is_refused(backend: ScriptedBackend) -> None:
    assert (await ask(backend, "word " * 40))[0] == 200
    assert (await ask(backend, "word " * 400))[0] == 400


async def test_planned_behaviours_apply_so_many_times(backend: ScriptedBackend) -> None:
    backend.plan({"status": "502"}, times=2)
    assert [(await ask(backend, "x"))[0] for _ in range(3)] == [502, 502, 200]


async def test_as_a_process_it_says_where_it_listens_and_takes_plans_over_http() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.scripted_backend",
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    body = {"messages": [{"role": "user", "content": "hi"}]}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/control", json={"behaviours": {"say": "planned"}}) as planned:
            assert planned.status == 200
        async with session.post(f"{url}/v1/chat/completions", json=body) as reply:
            assert (await reply.json())["choices"][0]["message"]["content"] == "planned"
        async with session.get(f"{url}/control") as seen:
            assert (await seen.json())["requests"] == [body]
    process.terminate()
    assert await process.wait() == 0


def test_an_unknown_behaviour_is_refused() -> None:
    with pytest.raises(ValueError, match="explode"):
        ScriptedBackend().plan({"explode": ""})


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        ({"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}, {"a": []}),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [False, False]),
        ({"anyOf": [{"const": 3}, {"type": "string"}]}, 3),
        ({"type": ["null", "string"]}, None),
    ],
)
def test_instances_fit_plain_schemas(schema: dict[str, Any], instance: object) -> None:
    assert instance_of(schema) == instance
