"""The local model server as a process."""

import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from launcher.probes import ask_ready
from tests.support.services import free_port, wait_until

LOAD_SECONDS = 100
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}

pytestmark = pytest.mark.slow


@contextmanager
def running_backend(models: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server that answers, and its port."""
    port = free_port()
    log = models / f"{port}.log"
    words = ["--port", str(port), "--models", str(models), "--alias", "small", "--slots", "2"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "launcher.local_backend", *words], stdout=output, stderr=output
        )
    with process:
        try:
            url = f"http://127.0.0.1:{port}/health"
            wait_until(
                lambda: process.poll() is not None or ask_ready(url) is None, LOAD_SECONDS, "the model does not load"
            )
            assert process.poll() is None, log.read_text()
            yield process, port
        finally:
            process.kill()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the model is put together in."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def port(models: Path) -> Iterator[int]:
    """The port of a server that the questions share."""
    with running_backend(models) as (_, port):
        yield port


def post(port: int, path: str, body: object) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, orjson.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, orjson.loads(response.read())
    finally:
        connection.close()


def test_it_answers_chats_and_stops_at_the_end_of_its_turn(port: int) -> None:
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    status, answer = post(port, "/v1/chat/completions", {"messages": messages, "max_tokens": 64, "temperature": 0})
    assert status == 200
    [choice] = answer["choices"]
    assert choice["message"]["content"].strip()
    assert "Question:" not in choice["message"]["content"]
    assert answer["model"] == "small"


def test_the_template_takes_every_shape_of_content(port: int) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    status, answer = post(port, "/apply-template", {"messages": messages})
    assert status == 200
    assert answer["prompt"] == "Instructions: Be brief.\n\nQuestion: Hello\n\nAnswer: \n\nResult: sunny\n\nAnswer:"


def test_a_prompt_beyond_a_slots_context_is_refused(port: int) -> None:
    messages = [{"role": "user", "content": "a b " * 4096}]
    status, answer = post(port, "/v1/chat/completions", {"messages": messages, "max_tokens": 1})
    assert status == 400
    assert answer["error"]["type"] == "exceed_context_size_error"


def test_sigterm_ends_it_cleanly(models: Path) -> None:
    with running_backend(models) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
