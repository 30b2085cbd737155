"""The client libraries as developers install them, against a running horde: tool loop and structured output each.

Their versions are pinned in programs/*requirements.txt and node/package-lock.json beside this file.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import python_for
from tests.support.horde import KEYS, MODEL, HordeProcesses

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 120


def answer_of(horde: HordeProcesses, *command: str | Path, model: str = MODEL) -> dict[str, object]:
    """What a client's program found out, from the last line that it prints."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(horde.folder),
        "OPENAI_BASE_URL": f"{horde.front}/v1",
        "OPENAI_API_KEY": KEYS.demo,
        "MODEL": model,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=horde.folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


STRUCTURED = {"structured": {"name": "", "rainy": False}}
EXPECTED = {"tool_loop": "Is it rainy?"} | STRUCTURED
HAS_NO_LOOP = {"instructor_sdk"}
"""Clients that only force a call, and leave loops to their users."""


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.stem)
def test_a_python_client_ends_its_tool_loop_and_gets_its_structure(horde: HordeProcesses, program: Path) -> None:
    expected = STRUCTURED if program.stem in HAS_NO_LOOP else EXPECTED
    assert answer_of(horde, python_for(program), program) == expected


@pytest.mark.parametrize("program", sorted((PROGRAMS.parent / "node").glob("*.mjs")), ids=lambda path: path.stem)
def test_a_node_client_ends_its_tool_loop_and_gets_its_structure(
    horde: HordeProcesses, client_node: Path, program: Path
) -> None:
    assert answer_of(horde, "node", client_node / program.name) == EXPECTED
