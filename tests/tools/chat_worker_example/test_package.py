"""The folder as a package, and the examples that go with it."""

import asyncio
import configparser
import json
import signal
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from launcher.procfile import read_procfile
from tests.support.scripted_backend import ScriptedBackend
from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde
from tests.tools.chat_worker_example.worker_process import running_worker
from tools.chat_worker_example import VERSION
from tools.chat_worker_example.config import OPTIONS

FOLDER = Path(__file__).parents[3] / "tools" / "chat_worker_example"
WITHOUT_POSIX = str(Path(__file__).parent / "without_posix.py")


@pytest.mark.slow
async def test_the_folder_builds_into_one_package_that_installs_and_runs(
    tmp_path: Path, backend: ScriptedBackend
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for path in (*FOLDER.glob("*.py"), FOLDER / "pyproject.toml", FOLDER / "README.md"):
        (source / path.name).write_bytes(path.read_bytes())
    await pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(source))
    wheel = tmp_path / f"horde_worker-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        entry_points = next(name for name in names if name.endswith("entry_points.txt"))
        assert "horde-worker = chat_worker_example.__main__:main" in content.read(entry_points).decode()
    assert {f"chat_worker_example/{path.name}" for path in FOLDER.glob("*.py")} <= names
    installed = tmp_path / "installed"
    await pip("install", "--no-deps", "--no-index", "--target", str(installed), str(wheel))
    settings = {"PYTHONPATH": str(installed), "BACKEND_URL": backend.url, "MODEL_NAME": "m"}
    async with running_worker("check", start=[str(installed / "bin" / "horde-worker")], **settings) as worker:
        assert await worker.exit_code() == 0, await worker.stderr()
    assert worker.lines[0].startswith("llama.cpp at ")


async def pip(*arguments: str) -> None:
    """Runs pip beside the event loop, which serves the backend."""
    command = [sys.executable, "-m", "pip", "--quiet", *arguments]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)


def test_the_package_needs_little() -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [dependency.partition(">")[0] for dependency in project["dependencies"]] == ["aiohttp"]


def test_nothing_of_the_hordes_own_code_is_used() -> None:
    for path in FOLDER.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not [name for name in ("app", "config", "front", "launcher", "tasks") if f"\nfrom {name}" in text], path


async def test_every_module_loads_where_there_is_no_posix() -> None:
    async with running_worker("--modules", start=[WITHOUT_POSIX]) as worker:
        assert await worker.exit_code() == 0, await worker.stderr()
    assert {line.strip() for line in worker.lines} == {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
async def test_a_worker_serves_and_stops_in_order_where_there_is_no_posix(
    horde: ScriptedHorde, environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    settings = environment | {"HEALTH_FILE": str(tmp_path / "health"), "LOG_FILE": str(tmp_path / "log")}
    async with running_worker("--view", start=[WITHOUT_POSIX], **settings) as worker:
        await horde.give("hello")
        [submit] = await horde.submitted()
        await horde.give("[[delay=1]]under way")
        await horde.until(lambda: len(horde.pops) >= 2)
        worker.signal(number)
        assert await worker.exit_code() == 0, await worker.stderr()
    assert submit["state"] == "ok"
    ended = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()][-1]
    assert (ended["event"], ended["exit_code"], ended["done"]) == ("stopped", 0, len(horde.submits))


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
