"""The home folder: its socket, its lock, its secrets."""

import subprocess
import sys
from pathlib import Path

import pytest

from launcher.errors import LauncherError
from launcher.home import SOCKET_PATH_LIMIT, Home
from launcher.local_secrets import LocalSecrets
from launcher.private_files import write_private_json

HOLD_THE_LOCK = """
import sys
from pathlib import Path
from launcher.home import Home
with Home(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_socket_of_a_deep_home_is_elsewhere_and_its_own(tmp_path: Path) -> None:
    shallow, deep, deeper = (Home(Path("/h")), Home(tmp_path / ("d" * 120)), Home(tmp_path / ("d" * 121)))
    assert shallow.socket == Path("/h/run/supervisor.sock")
    assert len(str(deep.socket)) <= SOCKET_PATH_LIMIT
    assert deep.socket != deeper.socket
    assert deep.socket == Home(deep.path).socket


def test_a_home_has_one_launcher_until_that_is_killed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(home.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert home.launcher_pid() == other.pid
        with pytest.raises(LauncherError, match="already runs"), home.locked():
            pass
        other.kill()
        other.wait(10)
    assert home.launcher_pid() is None
    with home.locked():
        pass


def test_secrets_are_made_once_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    first = LocalSecrets.load_or_create(path)
    assert LocalSecrets.load_or_create(path) == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(first.s3_access_key) >= 16
    assert first.admin_key != first.demo_key


def test_a_secret_that_a_newer_version_needs_is_added_to_the_kept_ones(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    write_private_json(path, {"admin_key": "kept"})
    completed = LocalSecrets.load_or_create(path)
    assert completed.admin_key == "kept"
    assert LocalSecrets.load_or_create(path) == completed


def test_a_broken_secrets_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text("{")
    with pytest.raises(LauncherError, match="cannot be read"):
        LocalSecrets.load_or_create(path)
    assert path.read_text() == "{"
