"""The folder that holds everything one horde keeps: data, logs, secrets, and what runs."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import LauncherError

SOCKET_PATH_LIMIT = 90
"""Bytes: the kernel takes 107, and supervisord adds a suffix of its own while it binds."""


@dataclass(frozen=True, slots=True)
class Home:
    """One horde's folder. The path is absolute."""

    path: Path

    @property
    def log(self) -> Path:
        """One log file a program."""
        return self.path / "log"

    @property
    def run(self) -> Path:
        """What is written anew at every start."""
        return self.path / "run"

    @property
    def programs(self) -> Path:
        """The start scripts of the programs."""
        return self.run / "programs"

    @property
    def models(self) -> Path:
        """The local model."""
        return self.path / "models"

    @property
    def secrets(self) -> Path:
        """Passwords and keys, made once."""
        return self.path / "secrets.json"

    @property
    def endpoints(self) -> Path:
        """Where to reach the horde, for programs (operations O1)."""
        return self.path / "endpoints.json"

    @property
    def detached_mark(self) -> Path:
        """Exists while a horde is meant to run without its launcher."""
        return self.run / "detached"

    @property
    def socket(self) -> Path:
        """The supervisor's control socket, in a short temporary folder when this one is too deep."""
        path = self.run / "supervisor.sock"
        if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
            return path
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"horde-{os.geteuid()}-{digest}" / "supervisor.sock"

    def scratch(self, program: str) -> Path:
        """Folder for the metrics of a program's processes, emptied when it starts."""
        return self.run / "metrics" / program

    def log_of(self, program: str) -> Path:
        """What a program said."""
        return self.log / f"{program}.log"

    def create(self) -> None:
        """Create the folders.

        Raises LauncherError when they cannot be.
        """
        try:
            # A root launcher's PostgreSQL runs as somebody else and must pass through.
            self.path.mkdir(mode=0o711, parents=True, exist_ok=True)
            for folder in (self.log, self.run, self.programs, self.models):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise LauncherError(f"{error.filename} cannot be created: {error.strerror}. Set HORDE_HOME.") from error

    def create_socket_folder(self) -> None:
        """Create the folder of a socket that lies elsewhere.

        Raises LauncherError when somebody else was there first.
        """
        folder = self.socket.parent
        folder.mkdir(mode=0o700, exist_ok=True)
        owner = folder.stat().st_uid
        if owner != os.geteuid():
            raise LauncherError(f"{folder} belongs to user {owner}: delete it, or choose a shorter HORDE_HOME.")

    def remove_socket(self) -> None:
        """Remove what a killed supervisor left of its socket."""
        self.socket.unlink(missing_ok=True)
        if self.socket.parent != self.run and self.socket.parent.exists():
            self.socket.parent.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the home for one launcher; the lock ends with its process, however that ends.

        Raises LauncherError when another launcher holds it.
        """
        with self._lock_file.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LauncherError(f"A launcher already runs for {self.path}. script/down stops it.") from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def launcher_pid(self) -> int | None:
        """The process that holds the lock, if any does."""
        if not self._lock_file.exists():
            return None
        with self._lock_file.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read() or 0) or None
        return None

    @property
    def _lock_file(self) -> Path:
        return self.run / "launcher.lock"
