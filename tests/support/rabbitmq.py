"""A throw-away RabbitMQ, for hordes that use one as Celery's broker."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.support.services import free_port, wait_until

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
START_SECONDS = 90
STOP_SECONDS = 20


class RabbitMq:
    """A node of its own, with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self._names = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What BROKER_URL takes."""
        return f"amqp://guest:guest@127.0.0.1:{self._port}//"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        self._folder.mkdir(exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "RABBITMQ_NODENAME": f"horde{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_PORT": str(self._names),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "none"),
        }
        with (self._folder / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [str(PROGRAM)], env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )
        wait_until(self._listens, START_SECONDS, f"RabbitMQ does not answer, see {self._folder}")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def kill(self) -> None:
        """End it without a chance to clean up, and the daemon of names that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.wait(STOP_SECONDS)
        subprocess.run(
            [shutil.which("epmd") or "epmd", "-port", str(self._names), "-kill"], check=False, capture_output=True
        )


@contextmanager
def running_rabbitmq(folder: Path) -> Iterator[RabbitMq]:
    """A RabbitMQ that runs within the block."""
    broker = RabbitMq(folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
