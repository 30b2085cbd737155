"""Throw-away PostgreSQL, Valkey and S3 for a test session, built by the launcher's own code."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from launcher.leftovers import end_leftovers
from launcher.program import MARKER, primary_group
from launcher.services.postgres import Postgres
from launcher.services.s3 import S3
from launcher.services.service import Service
from launcher.services.valkey import Valkey

START_SECONDS = 30
STOP_SECONDS = 20
FOLDER_PREFIX = "horde-tests-"
DISPOSABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Settings of a PostgreSQL that never has to survive its machine."""

_PORTS = random.SystemRandom()
"""Tests that run side by side begin with the same seed, and must not look at the same ports."""


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait for a condition, asking 20 times a second; fail with `what` when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.05)


def free_port() -> int:
    """A TCP port that nothing listens on, and that no connection gets as its own end before it is used.

    It lies below the ports that systems give to outgoing connections.
    """
    while True:
        port = _PORTS.randint(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class RunningService:
    """One service that a test can stop, kill and start again; its data stays."""

    def __init__(self, service: Service, home: Path) -> None:
        self.service = service
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """The program's name."""
        return self.service.program().name

    @property
    def log(self) -> Path:
        """Everything that the service said."""
        return self._home / f"{self.name}.log"

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped since."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The process that was started, None when it does not run."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        if self._process is not None:
            raise RuntimeError(f"{self.name} runs already")
        self.service.prepare()
        program = self.service.program()
        script = program.write_script(self._home)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", str(script)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, MARKER: str(self._home)},
                user=program.user,
                group=None if program.user is None else primary_group(program.user),
                extra_groups=None if program.user is None else [],
                start_new_session=True,
            )
        wait_until(self._answers, START_SECONDS, f"{self.name} does not answer, see {self.log}")

    def stop(self) -> None:
        """Stop it cleanly. One that does not run stays as it is."""
        self._end(getattr(signal, f"SIG{self.service.program().stop_signal}"))

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self._end(signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop it and its children where they are while the block runs: they take what they are sent and say nothing.

        Raises RuntimeError when it does not run.
        """
        if self._process is None:
            raise RuntimeError(f"{self.name} does not run")
        root = psutil.Process(self._process.pid)
        root.suspend()
        stopped = [root, *root.children(recursive=True)]
        for child in stopped[1:]:
            with suppress(psutil.NoSuchProcess):
                child.suspend()
        try:
            yield
        finally:
            for each in reversed(stopped):
                with suppress(psutil.NoSuchProcess):
                    each.resume()

    @property
    def is_answering(self) -> bool:
        """Whether it was started, still runs and answers."""
        if self._process is None or self._process.poll() is not None:
            return False
        return self._answers()

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.send_signal(number)
        process.wait(STOP_SECONDS)
        psutil.wait_procs(children, timeout=STOP_SECONDS)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"{self.name} ended at once:\n{self.log.read_text()[-2000:]}")
        try:
            self.service.check()
        except OSError:
            return False
        return True


class LocalServices:
    """The three services on free ports in a temporary folder that goes away with them.

    Services of an earlier session that was killed are ended first.
    """

    def __init__(self, postgres_settings: Mapping[str, str] = DISPOSABLE) -> None:
        _remove_abandoned()
        self.home = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        self.home.chmod(0o711)
        self.s3_access_key = "throw-away-access-key"
        self.s3_secret_key = "throw-away-secret-key"
        self.s3_bucket = "horde"
        self.postgres = RunningService(
            Postgres(self.home / "postgres", free_port(), "throw-away", dict(postgres_settings)), self.home
        )
        self.redis = self._redis("redis")
        self.s3 = RunningService(
            S3(self.home / "s3", free_port(), self.s3_access_key, self.s3_secret_key, self.s3_bucket), self.home
        )

    @contextmanager
    def own_redis(self, folder: str) -> Iterator[RunningService]:
        """Run a Valkey for what must not hear the signals of another horde: a database number parts none."""
        redis = self._redis(folder)
        redis.start()
        try:
            yield redis
        finally:
            redis.stop()

    def _redis(self, folder: str) -> RunningService:
        return RunningService(Valkey(self.home / folder, free_port(), "throw-away"), self.home)

    @property
    def database_url(self) -> str:
        """What DATABASE_URL takes."""
        return self.postgres.service.url

    @property
    def redis_url(self) -> str:
        """What REDIS_URL takes."""
        return self.redis.service.url

    @property
    def s3_endpoint_url(self) -> str:
        """What S3_ENDPOINT_URL takes."""
        return self.s3.service.url

    @property
    def environment(self) -> dict[str, str]:
        """The variables that bring a process of ours to these services."""
        return {
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "S3_ENDPOINT_URL": self.s3_endpoint_url,
            "S3_BUCKET": self.s3_bucket,
            "AWS_ACCESS_KEY_ID": self.s3_access_key,
            "AWS_SECRET_ACCESS_KEY": self.s3_secret_key,
        }

    def __enter__(self) -> Self:
        try:
            for service in (self.postgres, self.redis, self.s3):
                service.start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        for service in (self.s3, self.redis, self.postgres):
            service.stop()
        shutil.rmtree(self.home)


def _remove_abandoned() -> None:
    """End the services of sessions that are gone, and delete their folders."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        owner = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            end_leftovers(folder)
            shutil.rmtree(folder, ignore_errors=True)
