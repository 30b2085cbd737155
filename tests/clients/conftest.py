"""The clients' own environments, made once in the checkout and kept."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.horde import ROOT

HERE = Path(__file__).parent
KEPT = ROOT / ".clients"
INSTALL_SECONDS = 900


def python_for(program: Path) -> Path:
    """A Python that has a program's libraries at their pinned versions.

    Most programs share one; a library that does not go with the others has pins of its own.
    """
    own = program.with_name(f"{program.stem}-requirements.txt")
    requirements = own if own.exists() else program.with_name("requirements.txt")

    def install(folder: Path) -> None:
        run(sys.executable, "-m", "venv", "--clear", folder)
        run(folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", requirements)

    return made(requirements.stem, requirements, install) / "bin/python"


@pytest.fixture(scope="session")
def client_node() -> Path:
    """A folder in which Node finds the client libraries at their locked versions."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed here")

    def install(folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(HERE / "node", folder)
        run("npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefix", folder)

    folder = made("node", HERE / "node/package-lock.json", install)
    for program in (HERE / "node").glob("*.mjs"):
        shutil.copy(program, folder)
    return folder


def made(name: str, pins: Path, install: Callable[[Path], None]) -> Path:
    """A kept folder that holds what `pins` says, installed again when that changed."""
    folder = KEPT / name
    digest = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()
    marker = KEPT / f"{name}.sha256"
    if not marker.exists() or marker.read_text() != digest:
        KEPT.mkdir(exist_ok=True)
        install(folder)
        marker.write_text(digest)
    return folder


def run(*command: str | Path) -> None:
    """Run a command, and fail with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
