"""A whole horde of real processes, started from the Procfile's own lines, for flows over HTTP."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import openai
from sqlalchemy import create_engine, text

from app.services.invariants import check
from app.services.local_accounts import LocalKeys, ensure_local_accounts
from config.fault_points import FaultPoint
from config.settings import Settings
from launcher.procfile import read_procfile
from tests.support.services import LocalServices, free_port, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = "scripted"
START_SECONDS = 40
STOP_SECONDS = 40
KEYS = LocalKeys(
    admin="admin-key-of-22-chars-",
    demo="demo-key-of-22-chars--",
    worker="worker-key-of-22-chars",
    service_passkey="flows-service-passkey-",
)
PROCESSES = ("backend", "web", "front", "verdict", "tasks", "media", "beat", "worker")
FAST = {
    # Periods of seconds instead of tens, so that a flow sees a rescue within its patience.
    "SWEEP_SECONDS": "1",
    "RESCUE_AFTER_SECONDS": "1",
    "FALLBACK_POLL_SECONDS": "2",
    "NATIVE_THREADS": "16",
    "DRAIN_SECONDS": "5",
    "AVAILABILITY_GRACE_SECONDS": "3",
    "QUEUE_REFRESH_SECONDS": "1",
    "GENERATION_TTL_FLOOR_SECONDS": "6",
    "SCHEMA_LIMIT_SECONDS": "1",
    # Every flow comes from one address, and most with one key.
    "RATE_LIMITS": "false",
    "WORKERS_UNTRUSTED": "100000",
}


@dataclass
class Ports:
    """Where the processes listen."""

    front: int = field(default_factory=free_port)
    native: int = field(default_factory=free_port)
    backend: int = field(default_factory=free_port)
    verdict: int = field(default_factory=free_port)
    tasks: int = field(default_factory=free_port)
    beat: int = field(default_factory=free_port)
    media: int = field(default_factory=free_port)


@dataclass(frozen=True)
class Answer:
    """What a call came to; `body` is text where it is not JSON."""

    status: int
    body: Any
    headers: dict[str, str]

    @classmethod
    def read(cls, status: int, raw: bytes, headers: dict[str, str]) -> "Answer":
        """Read an answer as it came; the headers' names in small letters."""
        lowered = {name.lower(): value for name, value in headers.items()}
        is_json = lowered.get("content-type", "").startswith("application/json")
        return cls(status, json.loads(raw) if is_json else raw.decode(), lowered)


class HordeProcesses:
    """Starts, kills and starts again the processes of one horde."""

    def __init__(
        self,
        services: LocalServices,
        database_url: str,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        own: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """`settings` are every process's; `own` has some by process, which each of its starts gets."""
        self._own = {} if own is None else own
        self.services = services
        self.folder = folder
        self.ports = Ports()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._clients: list[openai.OpenAI] = []
        self._settings = FAST | dict(settings or {})
        self._database_url = database_url
        self._lines = read_procfile(ROOT / "Procfile")

    @property
    def front(self) -> str:
        """Base URL of the front."""
        return f"http://127.0.0.1:{self.ports.front}"

    @property
    def native(self) -> str:
        """Base URL of the native API."""
        return f"http://127.0.0.1:{self.ports.native}"

    @property
    def backend(self) -> str:
        """Base URL of the scripted backend."""
        return f"http://127.0.0.1:{self.ports.backend}"

    @property
    def settings(self) -> Settings:
        """What a process beside these needs to reach the same services."""
        return Settings(_env_file=None, database_url=self._database_url, redis_url=self.services.redis_url)

    def openai(self, key: str = KEYS.demo, *, retries: int = 0, timeout: float = 60) -> openai.OpenAI:
        """A client as a developer would make it."""
        client = openai.OpenAI(base_url=f"{self.front}/v1", api_key=key, max_retries=retries, timeout=timeout)
        self._clients.append(client)
        return client

    def start_all(self) -> None:
        """Create the accounts, start every process and wait until the worker is known."""
        ensure_local_accounts(self.settings, KEYS)
        for name in PROCESSES:
            self.start(name)
        self.wait_ready()

    def wait_web(self) -> None:
        """Wait until the native API answers, with no other process needed."""
        wait_until(partial(answers, f"{self.native}/healthz"), START_SECONDS, f"web is not there, see {self.folder}")

    def wait_ready(self) -> None:
        """Wait until both faces are ready and a worker is online."""
        for face in (self.native, self.front):
            wait_until(partial(answers, f"{face}/readyz"), START_SECONDS, f"{face} is not ready, see {self.folder}")
        wait_until(self._has_worker, START_SECONDS, f"no worker came, see {self.folder}")

    def start(self, name: str, fault: FaultPoint | None = None, **settings: str) -> None:
        """Start one process, with settings of its own; `fault` arms a point at which it dies once.

        A number at its end makes it a replica: `beat2` is another beat.
        """
        environment = self._environment(name) | dict(self._own.get(name, {})) | settings
        if fault is not None:
            marker = self.folder / f"{fault.value}.{len(list(self.folder.glob('*.fired')))}.fired"
            environment |= {"HORDE_FAULT_POINT": fault.value, "HORDE_FAULT_MARKER": str(marker)}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                self._command(name),
                cwd=ROOT / "tools" if name == "worker" else ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """End a process and its children by SIGKILL, as a machine that lost its power would."""
        process = self.running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)

    def freeze(self, name: str) -> None:
        """Stop a process and its children where they are, by SIGSTOP."""
        os.killpg(self.running[name].pid, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Let a frozen process go on."""
        os.killpg(self.running[name].pid, signal.SIGCONT)

    def stop(self, name: str) -> int:
        """End a process as a platform does, by SIGTERM to its group; return its exit code."""
        process = self.running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        return process.wait(STOP_SECONDS)

    def restart(self, name: str, fault: FaultPoint | None = None, **settings: str) -> None:
        """Kill a process and start it again."""
        if name in self.running:
            self.kill(name)
        self.start(name, fault, **settings)

    def close(self) -> None:
        """End everything."""
        for client in self._clients:
            client.close()
        for name in list(self.running):
            self.kill(name)

    def is_alive(self, name: str) -> bool:
        """Whether the process that was started under this name still runs."""
        return name in self.running and self.running[name].poll() is None

    def call(
        self,
        method: str,
        path: str,
        key: str | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        root: str | None = None,
    ) -> Answer:
        """Call a route of the native API, or of what is at `root`, with a JSON or form body.

        Status 0 when nobody answered.
        """
        sent = dict(headers or {}) | ({"apikey": key} if key else {})
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{root or self.native}{path}", data, sent, method=method)  # noqa: S310 - ours
        try:
            with urllib.request.urlopen(asked, timeout=10) as response:  # noqa: S310 - see above
                return Answer.read(response.status, response.read(), dict(response.headers))
        except urllib.error.HTTPError as error:
            with error:
                return Answer.read(error.code, error.read(), dict(error.headers))
        except OSError:
            return Answer(0, None, {})

    def backend_calls(self) -> int:
        """Completions that the worker's backend is writing just now."""
        with urllib.request.urlopen(f"{self.backend}/control", timeout=5) as response:  # noqa: S310 - a URL of ours
            return int(json.load(response)["open"])

    def query(self, statement: str, **values: object) -> list[tuple[object, ...]]:
        """Run a query on the horde's database."""
        engine = create_engine(self.settings.database_url)
        try:
            with engine.begin() as connection:
                result = connection.execute(text(statement), values)
                return [tuple(row) for row in result] if result.returns_rows else []
        finally:
            engine.dispose()

    def violations(self, *, at_rest: bool = False) -> list[str]:
        """Every invariant that does not hold."""
        engine = create_engine(self.settings.database_url)
        try:
            with engine.begin() as connection:
                return [str(violation) for violation in check(connection, at_rest=at_rest)]
        finally:
            engine.dispose()

    def cancel_open(self) -> None:
        """Cancel what a test left in the queue with the demo key, whose requests are limited."""
        for request_id, is_chat in self.query("SELECT id, is_chat FROM horde_requests WHERE ended_at IS NULL"):
            kind = "chat" if is_chat else "text"
            self.call("DELETE", f"/api/v2/generate/{kind}/status/{request_id}", KEYS.demo)

    def require_sound(self, seconds: float = 30) -> None:
        """Wait until the horde is at rest, then fail with every invariant that does not hold."""
        wait_until(
            lambda: not self.violations(at_rest=True), seconds, "the horde does not come to rest, or is not sound"
        )

    def _figures(self, name: str) -> Path:
        """A folder for the figures of a process's children, empty at its start."""
        folder = self.folder / "figures" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def figure(self, metric: str) -> float:
        """The sum of a metric over web and the task processes."""
        total = 0.0
        for port in (self.ports.native, self.ports.verdict, self.ports.tasks, self.ports.media):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
                text = response.read().decode()
            total += sum(float(value) for value in re.findall(rf"^{metric}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE))
        return total

    def _has_worker(self) -> bool:
        return answers(f"{self.native}/api/v2/generate/chat/models", contains=MODEL.encode())

    def _command(self, name: str) -> list[str]:
        if name == "backend":
            return [sys.executable, "-m", "tests.support.scripted_backend", "--port", str(self.ports.backend)]
        if name == "worker":
            return [sys.executable, "-m", "chat_worker_example"]
        return ["/bin/sh", "-c", f"exec {self._lines[name.rstrip('0123456789')]}"]

    def _environment(self, name: str) -> dict[str, str]:
        inherited = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "LANG": "C.UTF-8"}
        if name == "backend":
            return inherited
        if name == "worker":
            return inherited | {
                "HORDE_URL": self.front,
                "HORDE_API_KEY": KEYS.worker,
                "BACKEND_URL": self.backend,
                "MODEL_NAME": MODEL,
                "WORKER_NAME": "flows",
                "WORKER_THREADS": "8",
                "ABORT_LIMIT": "1000",
                "DECLARE": "tools,tool_choice_enforced,tool_choice_auto_faithful,json_object,reasoning,"
                "json_object_enforced,json_schema,json_schema_enforced",
            }
        metrics_port = getattr(self.ports, name, None) if name in {"verdict", "tasks", "media", "beat"} else None
        return (
            inherited
            | self.services.environment
            | {
                "DATABASE_URL": self._database_url,
                "HORDE_HOME": str(self.folder),
                "HORDE_NATIVE_PORT": str(self.ports.native),
                "HORDE_FRONT_PORT": str(self.ports.front),
                "NATIVE_URLS": self.native,
                "SERVICE_PASSKEY": KEYS.service_passkey,
                "REMAP_SIGTERM": "SIGQUIT",
            }
            | ({"HORDE_METRICS_PORT": str(metrics_port)} if metrics_port else {})
            | (
                {"PROMETHEUS_MULTIPROC_DIR": str(self._figures(name))}
                if name in {"web", "verdict", "tasks", "media"}
                else {}
            )
            | self._settings
        )


def answers(url: str, contains: bytes = b"") -> bool:
    """Whether a URL answers with a 2xx, and these bytes in it."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 - a URL of ours
            return contains in response.read()
    except (urllib.error.URLError, OSError):
        return False
