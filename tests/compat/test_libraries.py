"""The horde's own client libraries, as PyPI has them, against a running horde.

Their versions are pinned in programs/*-requirements.txt: horde-sdk is the newest that Python 3.11
takes, as later ones need 3.12. Row 9 of the compatibility checklist is the SDK's own models.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import python_for
from tests.support.horde import KEYS, HordeProcesses

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 180


def answer_of(horde: HordeProcesses, program: str) -> dict[str, object]:
    """What a client's program found out, from the last line that it prints."""
    path = PROGRAMS / f"{program}.py"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(horde.folder),
        "AI_HORDE_URL": f"{horde.front}/api/",
        "HORDE_API_KEY": KEYS.demo,
        "PYTHONWARNINGS": "ignore",
    }
    command = (python_for(path), path)
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=horde.folder
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_row_09_horde_sdk_registers_works_asks_polls_gives_and_lists(horde: HordeProcesses) -> None:
    assert answer_of(horde, "horde_sdk_text") == {
        "text": "Once upon a time.",
        "done": True,
        "rewarded": True,
        "transferred": 25.0,
        "worker": [True, True],
        "model_listed": True,
        "workers_counted": True,
        "version": True,
    }


def test_aihordeclient_reads_a_balance_and_finds_no_image_model(horde: HordeProcesses) -> None:
    assert answer_of(horde, "aihordeclient_status") == {"balance": True, "image_models": [], "unknown_key": True}
