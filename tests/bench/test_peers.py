"""The bench beside LiteLLM's proxy: where it finds the program, what it does without one, and what it leaves behind."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bench.litellm_proxy import HOW_TO_INSTALL, VARIABLE, NoSuchProgramError, find, running_proxy
from bench.peers import HEAD, Row, text_in
from tests.support.horde import ROOT

Program = Callable[[str], Path]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A shell script in the place of the proxy's program."""

    def write(script: str) -> Path:
        path = tmp_path / "litellm"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


def bench(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the bench where no program is on the PATH."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"PATH", VARIABLE}}
    return subprocess.run(
        [sys.executable, "-m", "bench.peers", *words],
        cwd=ROOT,
        env=inherited | {"PATH": "/nowhere"} | environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )


def test_without_the_program_it_says_how_to_install_it() -> None:
    ran = bench()
    assert (ran.returncode, ran.stdout) == (0, f"{HOW_TO_INSTALL}\n")


def test_a_named_program_that_is_not_there_is_an_error() -> None:
    assert bench("--litellm", "/nowhere/litellm").returncode == 2
    assert bench(**{VARIABLE: "/nowhere/litellm"}).returncode == 2


def test_the_option_goes_before_the_environment_and_that_before_the_path(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = program("exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    assert find() == there
    monkeypatch.setenv(VARIABLE, "/nowhere/litellm")
    with pytest.raises(NoSuchProgramError):
        find()
    assert find(str(there)) == there


def test_a_proxy_that_ends_at_once_is_told_of_at_once(program: Program, tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="ended with code 3"),
        running_proxy(program("exit 3"), tmp_path, "http://127.0.0.1:1"),
    ):
        pass


def test_a_proxy_ends_with_its_children_when_the_block_fails(program: Program, tmp_path: Path) -> None:
    server = f"""
echo $$ > {tmp_path}/pids
mkdir -p {tmp_path}/www/health && echo ready > {tmp_path}/www/health/readiness
{sys.executable} -m http.server --bind 127.0.0.1 --directory {tmp_path}/www "$6" & echo $! >> {tmp_path}/pids
wait"""
    with pytest.raises(ZeroDivisionError), running_proxy(program(server), tmp_path, "http://127.0.0.1:1"):
        _ = 1 / 0
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=10)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'data: {"choices": [{"delta": {"content": "wor"}}]}\n', "wor"),
        (b'data: {"choices": [{"delta": {"role": "assistant", "content": null}}]}\n', ""),
        (b'data: {"choices": [], "usage": null}\n', ""),
        (b"data: [DONE]\n", ""),
        (b": still there\n", ""),
    ],
)
def test_text_is_read_from_chunks_alone(line: bytes, text: str) -> None:
    assert text_in(line) == text


def test_what_is_added_is_compared_without_the_backend() -> None:
    row = Row("chat, 1 at once", 1.0, 11.0, 6.0, (1000.0, 50.0, 100.0))
    assert row.added_ratio == 0.5
    assert row.cells() == ("chat, 1 at once", "1.0", "10.0", "5.0", "0.50", "1000", "50.0", "100.0", "2.00")
    assert len(Row("first text, 1 at once", 1.0, 11.0, 6.0).cells()) == len(HEAD)
