"""The calls on the page "Write your own worker", sent to a real horde as they stand there."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.hand_worker import Answered, call
from tests.support.horde import KEYS, HordeProcesses

PAGE = (Path(__file__).parents[2] / "docs/how-to/write-your-own-worker.md").read_text(encoding="utf-8")
CALL = re.compile(
    r"curl -s \$H(\S+)[^']*?-H \"apikey: \$K\" -H 'Content-Type: application/json'[\s\\]*-d '(.*?)'\n```", re.DOTALL
)
MODEL = "my-model"
REQUEST = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 64, "stream": True}


def test_every_block_of_commands_is_a_call_that_is_sent_here() -> None:
    assert [path for path, _ in CALL.findall(PAGE)] == [
        "/generate/text/pop",
        "/generate/text/progress",
        "/generate/text/submit",
        "/generate/text/submit",
    ]


@pytest.fixture
def page(horde: HordeProcesses) -> "Page":
    return Page(horde)


class Page:
    """The page's calls, in their order: pop, progress, submit, fault."""

    def __init__(self, horde: HordeProcesses) -> None:
        self.horde = horde
        self.calls = [(path, json.loads(body)) for path, body in CALL.findall(PAGE)]

    def send(self, number: int, **changed: Any) -> Answered:
        """One of them, with what differs from run to run."""
        path, body = self.calls[number]
        return call("POST", f"{self.horde.front}/api/v2{path}", body | changed, KEYS.worker)

    def ask(self) -> str:
        """A request for the page's model, which has to be online first; its id."""
        assert self.send(0, wait=0, pop_key=f"first-{uuid4().hex}").body["id"] is None
        accepted = call("POST", f"{self.horde.native}/api/v2/generate/chat/async", REQUEST)
        assert accepted.status == 202, accepted
        return str(accepted.body["id"])

    def status(self, request_id: str) -> dict[str, Any]:
        """Where a request stands."""
        return call("GET", f"{self.horde.native}/api/v2/generate/chat/status/{request_id}").body


def test_a_worker_that_follows_the_page_is_paid(page: Page) -> None:
    request_id = page.ask()
    job = page.send(0, pop_key=f"page-{request_id}").body
    shown = json.loads(PAGE.partition("A job:\n\n```json\n")[2].partition("\n```")[0])
    assert set(shown) <= set(job)
    assert set(shown["payload"]) <= set(job["payload"])
    posted = page.send(1, id=job["id"])
    assert (posted.status, posted.body["cancelled"], posted.body["next_seq"]) == (200, False, 1)
    submitted = page.send(2, id=job["id"])
    assert submitted.status in {200, 202}
    while submitted.status == 202:
        submitted = page.send(2, id=job["id"])
    assert submitted.body["reward"] > 0
    [generation] = page.status(request_id)["generations"]
    assert generation["message"]["content"] == "Hello there."


def test_a_job_that_the_page_gives_back_is_queued_again(page: Page) -> None:
    request_id = page.ask()
    job = page.send(0, pop_key=f"page-{request_id}").body
    assert job["id"]
    assert page.send(3, id=job["id"]).status == 200
    status = page.status(request_id)
    assert (status["restarted"], status["done"]) == (1, False)
