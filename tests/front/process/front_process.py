"""The real front as a process."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.services import free_port, wait_until

PASSKEY = "a-passkey-of-the-tests"
ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 60.0


@dataclass
class FrontProcess:
    """A running front."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> int:
        """Its exit code, within the time."""
        return self.process.wait(seconds)


@contextmanager
def running_front(folder: Path, native_urls: str, redis_url: str, **settings: str) -> Iterator[FrontProcess]:
    """A front that answers; ended when the block is left."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "REDIS_URL": redis_url,
        "NATIVE_URLS": native_urls,
        "SERVICE_PASSKEY": PASSKEY,
        "HORDE_FRONT_PORT": str(port),
        **settings,
    }
    environment = {name: value for name, value in environment.items() if value}
    log = folder / f"front-{port}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "front.server"],
            cwd=ROOT,
            env=environment,
            stdout=stream,
            stderr=stream,
        )
    front = FrontProcess(f"http://127.0.0.1:{port}", process, log)
    try:
        wait_until(lambda: _alive(front), START_SECONDS, f"the front does not answer, see {log}")
        yield front
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)


def _alive(front: FrontProcess) -> bool:
    if front.process.poll() is not None:
        raise AssertionError(f"the front ended at once:\n{front.log.read_text()[-3000:]}")
    try:
        with urllib.request.urlopen(f"{front.url}/healthz", timeout=1) as response:  # noqa: S310
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def wait_for_redis(front: FrontProcess, seconds: float = 10.0) -> None:
    """Wait until the front hears signals."""

    def hears() -> bool:
        with urllib.request.urlopen(f"{front.url}/metrics", timeout=1) as response:  # noqa: S310
            return b"horde_front_signals_connected 1.0" in response.read()

    wait_until(hears, seconds, "the front does not reach Redis")
