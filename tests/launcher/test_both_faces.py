"""`horde serve`: both faces behind one port."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from config.settings import Settings
from launcher.both_faces import front_environment, native_environment
from tests.support.services import LocalServices, free_port, wait_until

START_SECONDS = 60
STOP_SECONDS = 30


@dataclass
class Serving:
    """A running `horde serve`."""

    process: subprocess.Popen[bytes]
    port: int
    native_port: int

    def answers(self, path: str) -> bool:
        """Whether a path is answered with 200."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def child(self, module: str) -> psutil.Process:
        """The process of one face."""
        children = psutil.Process(self.process.pid).children()
        return next(child for child in children if module in child.cmdline())


@pytest.fixture
def serving(services: LocalServices, database_url: str, tmp_path: Path) -> Iterator[Serving]:
    port, native_port = free_port(), free_port()
    environment = services.environment | {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": database_url,
        "PORT": str(port),
        "HORDE_NATIVE_PORT": str(native_port),
        "HORDE_BIND_HOST": "127.0.0.1",
        "DRAIN_SECONDS": "2",
    }
    command = [sys.executable, "-c", "from cli.main import main; main()", "serve"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    serving = Serving(process, port, native_port)
    try:
        wait_until(lambda: serving.answers("/readyz"), START_SECONDS, (tmp_path / "log").read_text())
        yield serving
    finally:
        faces = psutil.Process(process.pid).children() if process.poll() is None else []
        process.kill()
        for face in faces:
            face.kill()
        process.wait(STOP_SECONDS)


def test_both_faces_are_served_at_one_port_and_end_together(serving: Serving) -> None:
    assert serving.answers("/v1/models")
    assert serving.answers("/api/v2/generate/chat/models")
    faces = [serving.child("app.server"), serving.child("front.server")]
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(STOP_SECONDS) == 0
    assert [face for face in faces if face.is_running()] == []


@pytest.mark.parametrize("module", ["app.server", "front.server"])
def test_when_one_face_dies_the_command_ends(serving: Serving, module: str) -> None:
    faces = [serving.child("app.server"), serving.child("front.server")]
    serving.child(module).kill()
    assert serving.process.wait(STOP_SECONDS) == 1
    assert [face for face in faces if face.is_running()] == []


def test_the_native_api_is_out_of_reach_and_the_front_is_told_where_it_is() -> None:
    settings = Settings(_env_file=None, database_url="postgres://x", redis_url="redis://x", horde_native_port=7123)
    given = {"HORDE_BIND_HOST": "0.0.0.0", "NATIVE_URLS": "http://elsewhere", "PORT": "80"}  # noqa: S104 -- what hosts set
    assert native_environment(given)["HORDE_BIND_HOST"] == "127.0.0.1"
    told = front_environment(given, settings)
    assert (told["NATIVE_URLS"], told["HORDE_BIND_HOST"]) == ("http://127.0.0.1:7123", given["HORDE_BIND_HOST"])
