"""The promises of the declaration, kept on the real llama.cpp server and model that a fresh horde starts with."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.tools.chat_worker_example.llama_server import ROOT, running_llama
from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde, running_horde
from tests.tools.chat_worker_example.worker_process import run_command, running_worker
from tools.chat_worker_example.backends import LlamaCpp

CONTEXT = 1024
"""Tokens: a prompt that fills it is read in seconds."""

REPLY_TOKENS = 8
PATIENCE = 200.0
"""Seconds for a probe, which has a real model write on a machine that does other things too."""
JSON_NAMES = {"json_object", "json_object_enforced", "json_schema", "json_schema_enforced"}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "set_light",
        "description": "Switches a light.",
        "parameters": {
            "type": "object",
            "properties": {"state": {"type": "string", "enum": ["on", "off"]}},
            "required": ["state"],
            "additionalProperties": False,
        },
    },
}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]


@dataclass
class Served:
    """A server, a worker in front of it, and a scripted horde that gives it jobs."""

    url: str
    horde: ScriptedHorde
    declared: dict[str, Any]

    async def submit_of(self, job_id: str) -> dict[str, Any]:
        """The submit of a job, once it is there."""
        await self.horde.until(lambda: any(each["id"] == job_id for each in self.horde.submits), PATIENCE)
        return next(each for each in self.horde.submits if each["id"] == job_id)

    async def answer(self, *messages: str, **payload: Any) -> dict[str, Any]:
        """The submit of one job."""
        return await self.submit_of(await self.horde.give(*messages, ttl=PATIENCE, **payload))

    async def tokens_of(self, call: dict[str, Any]) -> int:
        """The server's own count of a call's prompt."""
        async with aiohttp.ClientSession() as session:
            return await LlamaCpp(session, self.url).count_tokens(call)


@asynccontextmanager
async def served(url: str) -> AsyncIterator[Served]:
    """A worker that has declared; one serves all tests, since its probe is what takes long."""
    async with running_horde() as horde:
        environment = {
            "HORDE_URL": horde.url,
            "HORDE_API_KEY": "key",
            "BACKEND_URL": url,
            "MODEL_NAME": "local",
            "WORKER_NAME": "Real worker",
            "MAX_LENGTH": "64",
            "PROGRESS_SECONDS": "0.05",
        }
        async with running_worker(**environment) as worker:
            yield Served(url, horde, await worker.event("declared", seconds=PATIENCE))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the model, which is put together once."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def plain_url(models: Path) -> Iterator[str]:
    with running_llama(models, CONTEXT) as url:
        yield url


@pytest.fixture(scope="module")
def tools_url(models: Path) -> Iterator[str]:
    with running_llama(models, CONTEXT, tools=True) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain(plain_url: str) -> AsyncIterator[Served]:
    async with served(plain_url) as ready:
        yield ready


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def with_tools(tools_url: str) -> AsyncIterator[Served]:
    async with served(tools_url) as ready:
        yield ready


def saying(words: int) -> str:
    return "hello " * words


async def longest_that_fits(plain: Served) -> int:
    """The most words that leave room for the reply, by the server's own count."""
    words = CONTEXT - REPLY_TOKENS
    while await count_of(plain, words) + REPLY_TOKENS > CONTEXT:
        words -= 1
    return words


async def count_of(plain: Served, words: int) -> int:
    return await plain.tokens_of({"messages": [{"role": "user", "content": saying(words)}]})


async def test_the_declaration_rests_on_what_the_server_shows(plain: Served) -> None:
    assert plain.declared["max_context_length"] == CONTEXT
    assert plain.declared["counter"] == "exact"
    assert plain.declared["counted_tokens"] == plain.declared["used_tokens"] > 0
    # This model's template renders no tools, so none are declared.
    assert set(plain.declared["features"]) == JSON_NAMES | {"prompt_overflow_refused"}


async def test_a_conversation_one_word_too_long_is_faulted_and_never_trimmed(plain: Served) -> None:
    words = await longest_that_fits(plain)
    answered = await plain.answer(saying(words), max_tokens=REPLY_TOKENS)
    assert answered["state"] == "ok"
    assert answered["usage"]["prompt_tokens"] == await count_of(plain, words)
    for too_many in (words + 1, 10 * words):
        submit = await plain.answer(saying(too_many), max_tokens=REPLY_TOKENS)
        assert submit == {"id": submit["id"], "state": "faulted", "fault": "prompt_overflow"}


async def test_a_schema_holds_as_far_as_the_reply_comes(plain: Served) -> None:
    schema = {
        "type": "object",
        "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}},
        "required": ["verdict"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "v", "strict": True, "schema": schema}}
    submit = await plain.answer("Is water wet?", response_format=response_format, temperature=0, max_tokens=24)
    # So small a model may spend the whole budget on the white space that JSON allows.
    reply = "".join(submit["message"]["content"].split())
    allowed = ['{"verdict":"yes"}', '{"verdict":"no"}']
    if submit["finish_reason"] == "length":
        assert any(instance.startswith(reply) for instance in allowed)
    else:
        assert reply in allowed


async def test_a_stream_of_the_server_is_its_reply_in_pieces(plain: Served) -> None:
    submit = await plain.answer("Count from one to ten in words.", stream=True, temperature=0, max_tokens=48)
    lease = plain.horde.leases[submit["id"]]
    assert submit["state"] == "ok"
    assert submit["usage"]["completion_tokens"] > 0
    assert lease.entries
    assert submit["message"]["content"].startswith(lease.text)


async def test_tools_are_declared_where_the_template_has_them(with_tools: Served) -> None:
    assert {"tools", "tool_choice_enforced", "prompt_overflow_refused"} <= set(with_tools.declared["features"])
    assert with_tools.declared["counter"] == "exact"


async def test_a_forced_call_comes_with_arguments_that_fit_its_schema(with_tools: Served) -> None:
    forced = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    submit = await with_tools.answer("Good morning!", **forced, temperature=0, max_tokens=48)
    assert submit["state"] == "ok"
    # The server's grammar allows more calls than one all the same; the horde keeps the first.
    call = submit["message"]["tool_calls"][0]
    assert call["function"]["name"] == "set_light"
    arguments = json.loads(call["function"]["arguments"])
    assert set(arguments) == {"state"}
    assert arguments["state"] in {"on", "off"}


async def test_a_call_and_its_result_go_on_in_the_conversation(with_tools: Served) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "set_light", "arguments": '{"state": "on"}'}}
    messages = [
        {"role": "user", "content": "Light, please."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "It is on."},
    ]
    asked = {"messages": messages, "tools": [TOOL], "tool_choice": "auto", "parallel_tool_calls": False}
    submit = await with_tools.answer(**asked, temperature=0, max_tokens=REPLY_TOKENS)
    assert submit["state"] == "ok"
    assert submit["usage"]["prompt_tokens"] == await with_tools.tokens_of(asked)


async def test_tools_too_long_for_the_context_are_faulted(with_tools: Served) -> None:
    wordy = {**TOOL, "function": {**TOOL["function"], "description": saying(CONTEXT)}}
    asked = {"tools": [wordy], "tool_choice": "required", "parallel_tool_calls": False}
    submit = await with_tools.answer("Hi", **asked, max_tokens=REPLY_TOKENS)
    assert submit == {"id": submit["id"], "state": "faulted", "fault": "prompt_overflow"}


def verdicts(text: str) -> list[tuple[str, ...]]:
    """Verdict and name of each line of a check: what does not depend on the machine."""
    return [match.groups() for match in re.finditer(r"^  (\w+) +(\S+(?: \S+)*?)  ", text, re.MULTILINE)]


@pytest.mark.parametrize(("server", "heading"), [("plain_url", "What a check shows"), ("tools_url", "With tools")])
async def test_the_check_in_the_docs_is_what_the_server_shows(
    server: str, heading: str, request: pytest.FixtureRequest
) -> None:
    code, printed = await run_command("check", BACKEND_URL=request.getfixturevalue(server), MODEL_NAME="local")
    assert code == 0
    page = (ROOT / "docs/how-to/backends/llama-cpp.md").read_text(encoding="utf-8")
    shown = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert verdicts(printed)
    assert verdicts(printed) == verdicts(shown)
