"""The client libraries as developers install them, reading live streams of a running horde."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import python_for
from tests.clients.test_clients import answer_of
from tests.support.hand_worker import HandWorker, call
from tests.support.horde import KEYS, HordeProcesses

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PROGRAMS = Path(__file__).parent / "streams"
PINS = Path(__file__).parent / "programs"
MODEL = "live-streams"
TEXT = "One 👩\u200d👩\u200d👧\u200d👦 family, ñ and 漢字.\n\ndata: [DONE]\n\n"
REASONING = "Let me think."
POST_SECONDS = 0.2


class PostingWorker(HandWorker):
    """Posts its reply in pieces that cut emoji, then submits it, for as long as the test runs."""

    def __init__(self, horde: HordeProcesses) -> None:
        super().__init__(horde, MODEL)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> "PostingWorker":
        self.pop()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(30)

    def _work(self) -> None:
        while not self._stopped.is_set():
            job = self.pop()
            if job is None:
                self._stopped.wait(0.1)
                continue
            self._serve(str(job["id"]))

    def _serve(self, job: str) -> None:
        pieces = [TEXT[start : start + 6] for start in range(0, len(TEXT), 6)]
        url = f"{self.horde.native}/api/v2/generate/text/progress"
        for seq, piece in enumerate(pieces):
            post = {"id": job, "seq": seq, "delta": piece, "reasoning_delta": REASONING if seq == 0 else ""}
            assert call("POST", url, post, KEYS.worker).status == 200
            time.sleep(POST_SECONDS)
        message = {"content": TEXT, "reasoning_content": REASONING}
        assert self.submit(job, {"message": message, "finish_reason": "stop"}).status == 200


@pytest.fixture
def posting(horde: HordeProcesses) -> Iterator[HordeProcesses]:
    """A horde with a worker that posts while it writes."""
    with PostingWorker(horde):
        yield horde


def text_and_parts(horde: HordeProcesses, *command: str | Path) -> tuple[object, bool]:
    """What a program read, and whether it came in several parts."""
    answer = answer_of(horde, *command, model=MODEL)
    return answer["text"], int(str(answer["parts"])) > 3


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.stem)
def test_a_python_client_reads_the_text_as_it_is_written(posting: HordeProcesses, program: Path) -> None:
    assert text_and_parts(posting, python_for(PINS / program.name), program) == (TEXT, True)


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.mjs")), ids=lambda path: path.stem)
def test_a_node_client_reads_the_text_as_it_is_written(
    posting: HordeProcesses, client_node: Path, program: Path
) -> None:
    placed = client_node / f"stream_{program.name}"
    placed.write_bytes(program.read_bytes())
    assert text_and_parts(posting, "node", placed) == (TEXT, True)
