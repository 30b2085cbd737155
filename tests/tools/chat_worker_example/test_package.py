"""The folder as a package, and the examples that go with it."""

import configparser
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from launcher.procfile import read_procfile
from tools.chat_worker_example import VERSION
from tools.chat_worker_example.config import OPTIONS

FOLDER = Path(__file__).parents[3] / "tools" / "chat_worker_example"
POSIX_ONLY = ("import fcntl", "import resource", "import pwd", "os.fork", "os.kill", "add_signal_handler", "SIGKILL")


@pytest.mark.slow
def test_the_folder_builds_into_one_package_with_its_command(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for path in (*FOLDER.glob("*.py"), FOLDER / "pyproject.toml", FOLDER / "README.md"):
        (source / path.name).write_bytes(path.read_bytes())
    options = ["--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(source)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options], check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"horde_worker-{VERSION}-py3-none-any")
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        entry_points = next(name for name in names if name.endswith("entry_points.txt"))
        assert "horde-worker = chat_worker_example.__main__:main" in content.read(entry_points).decode()
    assert {f"chat_worker_example/{path.name}" for path in FOLDER.glob("*.py")} <= names


def test_the_package_needs_little() -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [dependency.partition(">")[0] for dependency in project["dependencies"]] == ["aiohttp"]


def test_nothing_of_the_hordes_own_code_is_used() -> None:
    for path in FOLDER.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not [name for name in ("app", "config", "front", "launcher", "tasks") if f"\nfrom {name}" in text], path


def test_calls_that_only_posix_has_are_guarded() -> None:
    found = {
        (path.name, word)
        for path in FOLDER.glob("*.py")
        for word in POSIX_ONLY
        if word in path.read_text(encoding="utf-8")
    }
    assert found == {("waiting.py", "add_signal_handler")}
    assert "except NotImplementedError" in (FOLDER / "waiting.py").read_text(encoding="utf-8")


def test_the_systemd_unit_starts_the_command_and_sets_what_there_is() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(FOLDER / "examples" / "horde-worker.service")
    service = unit["Service"]
    assert service["ExecStart"].endswith("/horde-worker")
    assert service["Environment"].partition("=")[0] in {option.variable for option in OPTIONS}
    assert service["RestartPreventExitStatus"] == "2"


def test_the_procfile_runs_the_command_with_flags_that_there_are() -> None:
    worker = read_procfile(FOLDER / "examples" / "Procfile")["worker"].split()
    assert worker[0] == "horde-worker"
    assert {word for word in worker if word.startswith("--")} <= {option.flag for option in OPTIONS}
