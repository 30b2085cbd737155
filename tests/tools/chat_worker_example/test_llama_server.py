"""The promises of the declaration, kept on the real llama.cpp server and model that a fresh horde starts with."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde
from tests.tools.chat_worker_example.worker_process import run_command, running_worker
from tools.chat_worker_example.backends import LlamaCpp

ROOT = Path(__file__).parents[3]
REPLY_TOKENS = 8
PATIENCE = 200.0
"""Seconds for a probe, which has a real model write on a machine that does other things too."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def models() -> Iterator[str]:
    """The folder with the model, which is put together once."""
    with tempfile.TemporaryDirectory(prefix="horde-llama-") as folder:
        yield folder


@contextmanager
def serving(models: str, *start: str) -> Iterator[str]:
    """A running server, whose first line ends with its address."""
    options = ["--port", "0", "--models", models, "--alias", "local", "--slots", "1"]
    command = [sys.executable, *start, *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            line = next((line for line in server.stdout if "http://" in line), "")
            yield line.split()[-1]
        finally:
            server.kill()


@pytest.fixture(scope="module")
def llama_url(models: str) -> Iterator[str]:
    with serving(models, "-m", "launcher.local_backend") as url:
        yield url


@pytest.fixture
def environment(horde: ScriptedHorde, llama_url: str) -> dict[str, str]:
    return {
        "HORDE_URL": horde.url,
        "HORDE_API_KEY": "key",
        "BACKEND_URL": llama_url,
        "MODEL_NAME": "local",
        "WORKER_NAME": "Real worker",
        "MAX_LENGTH": "64",
    }


def text_of(words: int) -> str:
    return "hello " * words


async def tokens_of(url: str, words: int) -> int:
    """The server's own count of a conversation with so many words."""
    async with aiohttp.ClientSession() as session:
        call = {"messages": [{"role": "user", "content": text_of(words)}]}
        return await LlamaCpp(session, url).count_tokens(call)


async def longest_that_fits(url: str, context: int) -> int:
    """The most words that leave room for the reply, by the server's own count."""
    words = context - REPLY_TOKENS
    while await tokens_of(url, words) + REPLY_TOKENS > context:
        words -= 1
    return words


async def test_the_declaration_rests_on_what_the_server_shows(
    horde: ScriptedHorde, environment: dict[str, str]
) -> None:
    async with running_worker(**environment) as worker:
        declared = await worker.event("declared", seconds=PATIENCE)
    assert declared["counter"] == "exact"
    assert declared["counted_tokens"] == declared["used_tokens"] > 0
    json_names = {"json_object", "json_object_enforced", "json_schema", "json_schema_enforced"}
    # This model's template renders no tools, so none are declared.
    assert set(declared["features"]) == json_names | {"prompt_overflow_refused"}


async def test_a_conversation_one_word_too_long_is_faulted_and_never_trimmed(
    horde: ScriptedHorde, environment: dict[str, str], llama_url: str
) -> None:
    async with running_worker(**environment) as worker:
        context = (await worker.event("declared", seconds=PATIENCE))["max_context_length"]
        words = await longest_that_fits(llama_url, context)
        fits = await horde.give(text_of(words), max_tokens=REPLY_TOKENS, ttl=240)
        too_long = await horde.give(text_of(words + 1), max_tokens=REPLY_TOKENS)
        far_too_long = await horde.give(text_of(10 * words), max_tokens=REPLY_TOKENS)
        answered, *faulted = await horde.submitted(3, seconds=240)
    assert (answered["id"], answered["state"]) == (fits, "ok")
    assert answered["usage"]["prompt_tokens"] == await tokens_of(llama_url, words)
    assert faulted == [
        {"id": job_id, "state": "faulted", "fault": "prompt_overflow"} for job_id in (too_long, far_too_long)
    ]


async def test_a_schema_holds_as_far_as_the_reply_comes(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    schema = {
        "type": "object",
        "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}},
        "required": ["verdict"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "v", "strict": True, "schema": schema}}
    async with running_worker(**environment):
        await horde.give("Is water wet?", response_format=response_format, temperature=0, max_tokens=24)
        [submit] = await horde.submitted(seconds=PATIENCE)
    # So small a model may spend the whole budget on the white space that JSON allows.
    reply = "".join(submit["message"]["content"].split())
    allowed = ['{"verdict":"yes"}', '{"verdict":"no"}']
    if submit["finish_reason"] == "length":
        assert any(instance.startswith(reply) for instance in allowed)
    else:
        assert reply in allowed


async def test_a_stream_of_the_server_is_its_reply_in_pieces(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    async with running_worker(**environment, PROGRESS_SECONDS="0.05"):
        job_id = await horde.give("Count from one to ten in words.", stream=True, temperature=0, max_tokens=48)
        [submit] = await horde.submitted(seconds=PATIENCE)
    lease = horde.leases[job_id]
    assert submit["state"] == "ok"
    assert submit["usage"]["completion_tokens"] > 0
    assert lease.entries
    assert submit["message"]["content"].startswith(lease.text)


def verdicts(text: str) -> list[tuple[str, ...]]:
    """Verdict and name of each line of a check: what does not depend on the machine."""
    return [match.groups() for match in re.finditer(r"^  (\w+) +(\S+(?: \S+)*?)  ", text, re.MULTILINE)]


async def test_the_check_in_the_docs_is_what_the_server_shows(llama_url: str) -> None:
    code, printed = await run_command("check", BACKEND_URL=llama_url, MODEL_NAME="local")
    assert code == 0
    page = (ROOT / "docs/how-to/backends/llama-cpp.md").read_text(encoding="utf-8")
    assert verdicts(printed)
    assert verdicts(printed) == verdicts(page)
