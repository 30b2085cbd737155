"""LiteLLM's proxy, a peer of the front: where its program is, which version, and one that runs for a bench.

It lives in a virtual environment of its own, since its packages and the project's do not go
together. The program is what BENCH_LITELLM names, else `litellm` on the PATH.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.horde import MODEL, answers
from tests.support.services import free_port, wait_until

VARIABLE = "BENCH_LITELLM"
NAME = "LiteLLM"
HOW_TO_INSTALL = (
    f"{NAME} is not installed, so nothing was measured: python -m venv X && X/bin/pip install 'litellm[proxy]', "
    f"then --litellm X/bin/litellm or {VARIABLE}=X/bin/litellm"
)
START_SECONDS = 120.0
VERSION_SECONDS = 60.0
STOP_SECONDS = 20.0


class NoSuchProgramError(Exception):
    """A program was named that is not there."""


@dataclass(frozen=True, slots=True)
class RunningProxy:
    """A proxy that takes calls: the root of its URLs, and the key that it takes."""

    root: str
    key: str


def find(named: str | None = None) -> Path | None:
    """The proxy's program: the named one, else as the environment says; None when it is not installed.

    Raises NoSuchProgramError when one is named, here or in the environment, that cannot be run.
    """
    asked = named or os.environ.get(VARIABLE)
    found = shutil.which(asked or "litellm")
    if asked and found is None:
        raise NoSuchProgramError(f"{asked} is no program")
    return None if found is None else Path(found)


def version_of(program: Path) -> str:
    """What the program says of its version."""
    said = subprocess.run(
        [program, "--version"],
        capture_output=True,
        check=True,
        text=True,
        timeout=VERSION_SECONDS,
        env=_environment(program, Path.home()),
    ).stdout
    found = re.search(r"\d+(\.\d+)+\S*", said)
    return found[0] if found else said.strip()


@contextmanager
def running_proxy(program: Path, folder: Path, backend: str) -> Iterator[RunningProxy]:
    """One worker in front of this backend, with no database; it ends with the block, with its children.

    Raises AssertionError when it does not take calls in time, or ends before.
    """
    port, key = free_port(), f"sk-{secrets.token_hex(24)}"
    config, log = folder / "litellm.yaml", folder / "litellm.log"
    # JSON is YAML too.
    config.write_text(json.dumps(config_of(backend)))
    words = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=_environment(program, folder) | {"LITELLM_MASTER_KEY": key},
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    root = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _is_ready(process, root), START_SECONDS, f"{program} does not answer, see {log}")
        assert process.poll() is None, f"{program} ended with code {process.returncode}, see {log}"
        yield RunningProxy(root, key)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)


def config_of(backend: str) -> Mapping[str, object]:
    """The proxy's configuration: the backend as an OpenAI model of the name that the horde's has."""
    model = {"model": f"openai/{MODEL}", "api_base": f"{backend}/v1", "api_key": "none"}
    return {"model_list": [{"model_name": MODEL, "litellm_params": model}]}


def _is_ready(process: subprocess.Popen[bytes], root: str) -> bool:
    """Whether the wait is over: it takes calls, or it ended."""
    return process.poll() is not None or answers(f"{root}/health/readiness")


def _environment(program: Path, home: Path) -> dict[str, str]:
    """Nothing of the project's, and nothing that goes out to the network or writes a line for each call."""
    return {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "LITELLM_TELEMETRY_DISABLED": "true",
    }
