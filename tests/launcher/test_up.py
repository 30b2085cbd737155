"""The launcher as a process: started, signalled, killed, and what is left running after each."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from launcher.home import Home
from launcher.leftovers import find_leftovers
from launcher.stopping import down, stop_everything
from tests.support.services import wait_until

HERE = Path(__file__).parent
START_SECONDS = 60
GIVE_UP_SECONDS = 90
"""Longer than the supervisor's attempts to start a program take together."""
AWKWARD_NAME = "a home, 100% ours"
"""What shells and configuration formats stumble over."""
BLOCK = 14
"""Ports of one horde."""

GOOD = f"""\
release: sh -c 'echo migrated >> "$HORDE_HOME/released"'
web: python {HERE}/ready_server.py "$HORDE_NATIVE_PORT"
front: python {HERE}/ready_server.py "$HORDE_FRONT_PORT"
idle: sleep 1000
"""
FAILING = GOOD + "broken: sh -c 'echo the reason of it all; exit 3'\n"
FRAGILE = (
    GOOD + "fragile: sh -c '! test -e \"$HORDE_HOME/broken\" || { echo it is broken; exit 3; }; exec sleep 2000'\n"
)
UNMIGRATED = GOOD.replace("echo migrated", "echo no such table; exit 1; echo")


def free_block() -> int:
    """The first of a block of ports that nothing listens on; other sessions on this machine look elsewhere first."""
    blocks = range(20_000, 32_000, 20)
    first = os.getpid() % len(blocks)
    for number in range(len(blocks)):
        base = blocks[(first + number) % len(blocks)]
        try:
            for port in range(base, base + BLOCK):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return base
    raise AssertionError("this machine has no free block of ports")


def command_of(process: psutil.Process) -> str:
    """Its command line; nothing for a process that has ended since it was found."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class Launched:
    """A launcher of a small horde, and the home that it works in."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / AWKWARD_NAME)
        self.base = free_block()
        self._procfile = folder / "Procfile"
        self._output = folder / "output"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, procfile: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a launcher; an earlier one of the same home must have ended."""
        self._procfile.write_text(procfile)
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "small_horde.py"), str(self._procfile), *arguments],
                stdout=output,
                stderr=output,
                env={**os.environ, "HORDE_HOME": str(self.home.path), "HORDE_PORT_BASE": str(self.base)},
            )
        return self.process

    def finish(self, procfile: str, *arguments: str) -> int:
        """Start a launcher and wait for its end; returns its exit code."""
        return self.start(procfile, *arguments).wait(START_SECONDS)

    def start_fully(self, procfile: str = GOOD) -> subprocess.Popen[bytes]:
        """Start a launcher that stays, and wait until its horde is up."""
        process = self.start(procfile)

        def ended_or_up() -> bool:
            return process.poll() is not None or "Ctrl-C stops it" in self.output

        wait_until(ended_or_up, START_SECONDS, "the horde is not up")
        assert process.poll() is None, self.output
        return process

    @property
    def output(self) -> str:
        """What the last launcher said."""
        return self._output.read_text()

    def running(self) -> list[psutil.Process]:
        """Every process of the home."""
        return find_leftovers(self.home.path)

    def runs(self, words: str) -> bool:
        """Whether a process of the home has these words in its command line."""
        return any(words in command_of(entry) for entry in self.running())

    def pid_of(self, script: str) -> int:
        """The process of a program whose command line contains this."""
        [process] = [entry for entry in self.running() if script in command_of(entry)]
        return process.pid


@contextmanager
def small_horde() -> Iterator[Launched]:
    """A home for one small horde, of which nothing runs on when the test is over."""
    # Not tmp_path: every pytest on this machine closes its parent to the account that PostgreSQL runs as.
    with tempfile.TemporaryDirectory(prefix="horde-launcher-") as folder:
        horde = Launched(Path(folder))
        try:
            yield horde
        finally:
            if horde.process is not None and horde.process.poll() is None:
                horde.process.kill()
                horde.process.wait(10)
            stop_everything(horde.home)


@pytest.fixture
def launched() -> Iterator[Launched]:
    with small_horde() as horde:
        yield horde


@pytest.fixture
def other() -> Iterator[Launched]:
    with small_horde() as horde:
        yield horde


def test_a_detached_horde_runs_until_it_is_taken_down(launched: Launched) -> None:
    assert launched.finish(GOOD, "--detach") == 0, launched.output
    endpoints = json.loads(launched.home.endpoints.read_text())
    assert launched.home.endpoints.stat().st_mode & 0o777 == 0o600
    assert endpoints["front"] == f"http://127.0.0.1:{launched.base}"
    assert endpoints["demo_key"] in launched.output
    with psycopg.connect(endpoints["database_url"]) as connection:
        connection.execute("CREATE TABLE kept (id int)")
    assert down(launched.home)
    assert launched.running() == []
    assert not down(launched.home)


def test_a_home_too_deep_for_a_socket_works_too(launched: Launched) -> None:
    launched.home = Home(launched.home.path.joinpath("deep" * 20, "deeper" * 20))
    assert launched.finish(GOOD, "--detach") == 0, launched.output
    assert not launched.home.socket.is_relative_to(launched.home.path)
    assert down(launched.home)
    assert not launched.home.socket.parent.exists()


def test_a_second_start_keeps_data_and_keys(launched: Launched) -> None:
    assert launched.finish(GOOD, "--detach") == 0, launched.output
    first = json.loads(launched.home.endpoints.read_text())
    with psycopg.connect(first["database_url"]) as connection:
        connection.execute("CREATE TABLE kept (id int)")
    down(launched.home)
    assert launched.finish(GOOD, "--detach") == 0, launched.output
    assert json.loads(launched.home.endpoints.read_text()) == first
    with psycopg.connect(first["database_url"]) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    assert (launched.home.path / "released").read_text() == "migrated\nmigrated\n"


def test_a_detached_horde_is_not_started_twice(launched: Launched) -> None:
    assert launched.finish(GOOD, "--detach") == 0, launched.output
    before = {process.pid for process in launched.running()}
    assert launched.finish(GOOD, "--detach") == 1
    assert "already runs" in launched.output
    assert before == {process.pid for process in launched.running()}


@pytest.fixture
def hang_ups_count() -> Iterator[None]:
    """Children hear SIGHUP even when whoever runs the tests, nohup say, has it ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_ups_count")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_in_order(launched: Launched, number: signal.Signals) -> None:
    launcher = launched.start_fully()
    launcher.send_signal(number)
    assert launcher.wait(START_SECONDS) == 0
    assert launched.running() == []
    assert "stopped: postgres (exit status 0)" in launched.home.log_of("supervisord").read_text()


def test_taking_down_ends_the_launcher_too(launched: Launched) -> None:
    launcher = launched.start_fully()
    assert down(launched.home)
    assert launcher.wait(START_SECONDS) == 0
    assert launched.running() == []


@pytest.mark.parametrize(
    ("procfile", "explanation"),
    [
        (FAILING, ["broken failed", "the reason of it all", "broken.log"]),
        (UNMIGRATED, ["no such table", "release.log"]),
    ],
)
def test_what_fails_is_named_with_its_last_lines(launched: Launched, procfile: str, explanation: list[str]) -> None:
    assert launched.finish(procfile, "--detach") == 1
    assert [words for words in explanation if words not in launched.output] == []
    assert launched.running() == []


def test_a_service_that_cannot_start_is_named(launched: Launched) -> None:
    launched.home.create()
    data = launched.home.path / "postgres" / "data"
    data.mkdir(parents=True)
    assert launched.finish(GOOD, "--detach") == 1
    assert "postgres failed" in launched.output
    assert str(data) in launched.output
    assert launched.running() == []


def test_a_taken_port_stops_the_start_before_anything_runs(launched: Launched) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", launched.base + 1))
        holder.listen()
        assert launched.finish(GOOD, "--detach") == 1
    assert f"Port {launched.base + 1}, wanted by the native API, is taken" in launched.output
    assert not (launched.home.path / "postgres").exists()


def test_a_killed_process_comes_back(launched: Launched) -> None:
    launched.start_fully()
    killed = launched.pid_of("sleep 1000")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: "idle had ended and was started again" in launched.output, 15, "idle does not come back")
    wait_until(lambda: launched.runs("sleep 1000"), 15, "idle does not run")
    assert launched.pid_of("sleep 1000") != killed


@pytest.mark.slow
def test_a_process_that_no_longer_starts_ends_the_whole_horde(launched: Launched) -> None:
    launcher = launched.start_fully(FRAGILE)
    (launched.home.path / "broken").touch()
    os.kill(launched.pid_of("sleep 2000"), signal.SIGKILL)
    assert launcher.wait(GIVE_UP_SECONDS) == 1
    assert "fragile failed" in launched.output
    assert "it is broken" in launched.output
    assert launched.running() == []


def _kill_launcher(launched: Launched) -> None:
    assert launched.process is not None
    launched.process.kill()
    launched.process.wait(10)


def _kill_supervisor_and_launcher(launched: Launched) -> None:
    _kill_launcher(launched)
    os.kill(launched.pid_of("supervisord"), signal.SIGKILL)
    wait_until(lambda: not launched.runs("supervisord"), 10, "the supervisor does not end")


def test_the_launcher_notices_a_killed_supervisor_and_ends_the_orphans(launched: Launched) -> None:
    launcher = launched.start_fully()
    os.kill(launched.pid_of("supervisord"), signal.SIGKILL)
    assert launcher.wait(START_SECONDS) == 1
    assert "The supervisor does not answer" in launched.output
    assert launched.running() == []


@pytest.mark.parametrize("kill", [_kill_launcher, _kill_supervisor_and_launcher])
def test_the_next_start_cleans_up_after_a_kill(launched: Launched, kill: Callable[[Launched], None]) -> None:
    launched.start_fully()
    kill(launched)
    orphans = {process.pid for process in launched.running()}
    assert orphans
    launched.start_fully()
    assert orphans.isdisjoint(process.pid for process in launched.running())


def test_a_horde_whose_supervisor_was_killed_can_still_be_taken_down(launched: Launched) -> None:
    launched.start_fully()
    _kill_supervisor_and_launcher(launched)
    assert launched.running()
    assert down(launched.home)
    assert launched.running() == []


def test_another_home_is_left_alone(launched: Launched, other: Launched) -> None:
    assert other.finish(GOOD, "--detach") == 0, other.output
    launched.base = free_block()
    assert launched.finish(GOOD, "--detach") == 0, launched.output
    before = {process.pid for process in other.running()}
    stop_everything(launched.home)
    assert {process.pid for process in other.running()} == before
