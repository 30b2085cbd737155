"""supervisord as the runner of all programs: its configuration, and the calls that watch and stop it.

A process that is killed comes back by itself, which is why a supervisor runs the
Procfile and not a runner that stops everything when one process ends.
"""

import getpass
import resource
import shlex
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, cast

import psutil
from supervisor.xmlrpc import SupervisorTransport

from launcher.errors import LauncherError
from launcher.home import Home
from launcher.program import MARKER, Program

HEALTHY_SECONDS = 10
"""A program that ends sooner than this after its start counts as failed to start."""
START_ATTEMPTS = 8
STOP_SECONDS = 30
"""Between SIGTERM and SIGKILL, as on Procfile hosts."""
SUPERVISOR_START_SECONDS = 15
LOG_BYTES = 10 * 2**20
LOG_BACKUPS = 3
TAIL_LINES = 20
OPEN_FILES = 65_536

BACKOFF, FATAL = 30, 200
"""supervisord's process states that mean trouble: ended too soon and tried again, and given up."""


@dataclass(frozen=True, slots=True)
class ProgramState:
    """What the supervisor knows of one program."""

    name: str
    state: int
    pid: int
    seconds: int
    """How long it has run, 0 when it does not."""
    problem: str

    @property
    def failed_to_start(self) -> bool:
        """Whether it ended right after a start, be it tried again or not."""
        return self.state in {BACKOFF, FATAL}

    @property
    def given_up(self) -> bool:
        """Whether the supervisor starts it no more."""
        return self.state == FATAL


def write_configuration(home: Home, groups: Mapping[str, Sequence[Program]]) -> Path:
    """Write supervisord's configuration and a start script a program.

    Groups are stopped one after another in the reverse of the given order; the
    programs of a group at the same time. Nothing starts by itself.
    """
    sections: dict[str, dict[str, object]] = {
        "unix_http_server": {"file": _seen_from(home, home.socket), "chmod": "0700"},
        "supervisord": {
            "nodaemon": "true",
            "silent": "true",
            "user": getpass.getuser(),
            "logfile": _seen_from(home, home.log_of("supervisord")),
            "logfile_maxbytes": LOG_BYTES,
            "logfile_backups": LOG_BACKUPS,
            "pidfile": _seen_from(home, home.run / "supervisord.pid"),
            "childlogdir": _seen_from(home, home.log),
            "minfds": _open_files(),
        },
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface",
        },
    }
    for priority, (group, programs) in enumerate(groups.items(), start=1):
        sections[f"group:{group}"] = {"programs": ",".join(program.name for program in programs), "priority": priority}
        for program in programs:
            sections[f"program:{program.name}"] = _program_section(home, program)
    lines = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{name}={value}" for name, value in options.items()]
    configuration = home.run / "supervisord.conf"
    configuration.write_text("\n".join(lines) + "\n")
    return configuration


def _program_section(home: Home, program: Program) -> dict[str, object]:
    section: dict[str, object] = {
        "command": f"/bin/sh {_seen_from(home, program.write_script(home.programs))}",
        "autostart": "false",
        "autorestart": "true",
        "startsecs": HEALTHY_SECONDS,
        "startretries": START_ATTEMPTS,
        "stopsignal": program.stop_signal,
        "stopwaitsecs": STOP_SECONDS,
        "stopasgroup": str(program.stop_whole_group).lower(),
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": _seen_from(home, home.log_of(program.name)),
        "stdout_logfile_maxbytes": LOG_BYTES,
        "stdout_logfile_backups": LOG_BACKUPS,
    }
    if program.user is not None:
        section["user"] = program.user
    return section


def _seen_from(home: Home, path: Path) -> str:
    """A path as supervisord may read it: it works in the home, whose own path may hold what its format cannot."""
    return str(path.relative_to(home.path) if path.is_relative_to(home.path) else path)


def _open_files() -> int:
    """Every connection of a front is an open file, so programs get as many as the machine lets them have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if most == resource.RLIM_INFINITY else min(most, OPEN_FILES)


class Supervisor:
    """The supervisor of one home: started here, or found running."""

    def __init__(self, home: Home) -> None:
        self._home = home
        transport = SupervisorTransport(None, None, f"unix://{home.socket}")
        self._server = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
        self._transport = transport

    def start(self, configuration: Path) -> None:
        """Start supervisord in a session of its own, so that a terminal's Ctrl-C reaches the launcher alone.

        Raises LauncherError when it does not come up.
        """
        self._home.create_socket_folder()
        executable = Path(sys.executable).with_name("supervisord")
        program = Program(
            name="supervisord",
            command=shlex.join([str(executable), "--configuration", str(configuration)]),
            directory=self._home.path,
            environment={MARKER: str(self._home.path)},
        )
        output = self._home.log_of("supervisord-output")
        with output.open("wb") as log:
            process = subprocess.Popen(
                ["/bin/sh", str(program.write_script(self._home.programs))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + SUPERVISOR_START_SECONDS
        while self.pid() is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise LauncherError(f"supervisord does not come up:\n{output.read_text()}{self._home_tail()}".rstrip())
            time.sleep(0.05)

    def pid(self) -> int | None:
        """The supervisor's process, or none when it does not answer."""
        try:
            return int(cast("int", self._call("getPID")))
        except LauncherError:
            return None

    def start_group(self, group: str) -> None:
        """Start those of a group's programs that do not run yet, without waiting for them."""
        self._call("startProcessGroup", group, False)

    def start_program(self, group: str, program: str) -> None:
        """Start one program without waiting for it."""
        self._call("startProcess", f"{group}:{program}", False)

    def states(self) -> list[ProgramState]:
        """Every program's state.

        Raises LauncherError when the supervisor is gone.
        """
        return [
            ProgramState(
                name=entry["name"],
                state=entry["state"],
                pid=entry["pid"],
                seconds=entry["now"] - entry["start"] if entry["pid"] else 0,
                problem=entry["spawnerr"] or "it ended",
            )
            for entry in cast("list[dict[str, Any]]", self._call("getAllProcessInfo"))
        ]

    def shut_down(self) -> None:
        """Stop all programs in order, then the supervisor, and wait for its end.

        One that does not answer is left alone.
        """
        pid = self.pid()
        if pid is None:
            return
        try:
            process = psutil.Process(pid)
            self._call("shutdown")
            process.wait(4 * STOP_SECONDS)
        except (LauncherError, psutil.Error):
            return

    def _call(self, method: str, *arguments: object) -> object:
        try:
            return getattr(self._server.supervisor, method)(*arguments)
        except (OSError, HTTPException, xmlrpc.client.Error) as error:
            raise LauncherError(f"The supervisor does not answer ({error}).") from error
        finally:
            self._transport.close()

    def _home_tail(self) -> str:
        return log_tail(self._home.log_of("supervisord"))


def log_tail(log: Path) -> str:
    """The last lines of a log, or a word that there are none."""
    if not log.exists():
        return "(no log)"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 16_384))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-TAIL_LINES:]) or "(the log is empty)"
