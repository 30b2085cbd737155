"""Live streams through the whole horde: worker, native API, Redis, front, client (front F4, details D6, D7, D15)."""

import urllib.request
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import openai
import orjson
import pytest

from tests.support.hand_worker import HandWorker, call
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until

_NUMBERS = count()


class LiveStream:
    """A client's open stream, and the worker that has its job."""

    def __init__(self, horde: HordeProcesses, sdk: openai.OpenAI) -> None:
        self.horde = horde
        self.worker = HandWorker(horde, f"live-{next(_NUMBERS)}")
        self.worker.pop()
        asked: Any = [{"role": "user", "content": "Tell me."}]
        self.chunks = sdk.chat.completions.create(model=self.worker.model, messages=asked, stream=True)
        opening = next(self.chunks)
        assert opening.choices[0].delta.role == "assistant"
        self.request_id = opening.id.removeprefix("chatcmpl-")
        self.job = str(self.worker.wait_for_job()["id"])

    def post(self, seq: int, delta: str) -> dict[str, Any]:
        """Post as the worker."""
        body = {"id": self.job, "seq": seq, "delta": delta}
        answered = call("POST", f"{self.horde.native}/api/v2/generate/text/progress", body, KEYS.worker)
        assert answered.status == 200, answered
        return answered.body

    def fail(self) -> None:
        """Give the job up, and take it again as it goes back to the queue."""
        body = {"id": self.job, "state": "faulted", "fault": "backend_error"}
        call("POST", f"{self.horde.native}/api/v2/generate/text/submit", body, KEYS.worker)
        self.job = str(self.worker.wait_for_job()["id"])

    def submit(self, text: str) -> None:
        """Submit the reply."""
        assert self.worker.submit(self.job, {"message": {"content": text}, "finish_reason": "stop"}).status == 200

    def read(self, wanted: str) -> None:
        """Read until the deltas say exactly this."""
        got = ""
        while got != wanted:
            got += next(self.chunks).choices[0].delta.content or ""
            assert wanted.startswith(got), got

    def rest(self) -> str:
        """What comes until the end."""
        return "".join(chunk.choices[0].delta.content or "" for chunk in self.chunks)


@pytest.fixture
def live(horde: HordeProcesses) -> Iterator[LiveStream]:
    with openai.OpenAI(base_url=f"{horde.front}/v1", api_key=KEYS.demo, max_retries=0) as sdk:
        yield LiveStream(horde, sdk)


def test_a_client_reads_what_the_worker_posts_and_then_the_rest(live: LiveStream) -> None:
    live.post(0, "Hello ")
    live.read("Hello ")
    live.post(1, "there")
    live.read("there")
    live.submit("Hello there, friend.")
    assert live.rest() == ", friend."


def test_another_attempt_with_the_same_text_goes_on_and_with_a_different_one_ends_the_stream(live: LiveStream) -> None:
    live.post(0, "Hello ")
    live.read("Hello ")
    live.fail()
    live.post(0, "Hello there")
    live.read("there")
    live.fail()
    live.post(0, "Good morning")
    with pytest.raises(openai.APIError) as error:
        live.rest()
    assert error.value.code == "StreamDiverged"


def test_a_client_that_leaves_is_charged_for_what_was_posted_and_the_worker_is_told(live: LiveStream) -> None:
    live.post(0, "Hello ")
    live.read("Hello ")
    live.chunks.close()
    url = f"{live.horde.native}/api/v2/generate/chat/status/{live.request_id}"
    wait_until(lambda: call("GET", url).body["state"] == "cancelled", 10, "the request is not cancelled")
    status = call("GET", url).body
    assert [each["message"]["content"] for each in status["generations"]] == ["Hello "]
    assert status["kudos"] > 0
    assert live.post(1, "there")["cancelled"] is True


def test_the_owner_follows_a_request_on_the_native_stream_and_nobody_else_does(live: LiveStream) -> None:
    url = f"{live.horde.front}/v2/generate/chat/stream/{live.request_id}"
    assert call("GET", url, key=KEYS.worker).status == 404
    live.post(0, "Hello ")
    live.submit("Hello there.")
    request = urllib.request.Request(url, headers={"apikey": KEYS.demo})  # noqa: S310 - a URL of ours
    with closing(urllib.request.urlopen(request, timeout=30)) as response:  # noqa: S310
        events = response.read().decode().strip().split("\n\n")
    names = [event.split("\n")[0] for event in events if not event.startswith(":")]
    assert names == ["event: delta", "event: done"]
    status = orjson.loads(events[-1].rpartition("data: ")[2])
    assert status["generations"][0]["message"]["content"] == "Hello there."
    assert live.rest() == "Hello there."
