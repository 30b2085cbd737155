"""Fixtures: a scripted horde and backend, and the environment that ties a worker to them."""

import socket
from collections.abc import AsyncIterator

import pytest

from tests.support.scripted_backend import ScriptedBackend, running_backend
from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde, running_horde
from tests.tools.chat_worker_example.worker_process import WorkerProcess, running_worker

API_KEY = "worker-owner-key-00001"


@pytest.fixture
async def horde() -> AsyncIterator[ScriptedHorde]:
    async with running_horde() as horde:
        yield horde


@pytest.fixture
async def backend() -> AsyncIterator[ScriptedBackend]:
    async with running_backend() as backend:
        yield backend


@pytest.fixture
def environment(horde: ScriptedHorde, backend: ScriptedBackend) -> dict[str, str]:
    return {
        "HORDE_URL": horde.url,
        "HORDE_API_KEY": API_KEY,
        "BACKEND_URL": backend.url + "/v1",
        "MODEL_NAME": "scripted:model",
        "WORKER_NAME": "Test worker",
    }


@pytest.fixture
async def worker(environment: dict[str, str]) -> AsyncIterator[WorkerProcess]:
    async with running_worker(**environment) as worker:
        yield worker


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
