"""A requester who sends images, and a worker that says what reached it."""

import base64
import urllib.error
import urllib.request
from typing import Any
from uuid import uuid4

import orjson

from tests.support.hand_worker import EVERYTHING, Answered, HandWorker, Json, call
from tests.support.horde import KEYS, HordeProcesses
from tests.support.pictures import image_part
from tests.support.services import wait_until

REPLY: Json = {"message": {"content": "I see two colours."}, "finish_reason": "stop"}


class Seeing:
    """One model that one worker serves."""

    def __init__(self, horde: HordeProcesses) -> None:
        self.horde = horde
        self.model = f"seeing-{uuid4().hex[:8]}"

    def worker(self, *transports: str, name: str = "", **declared: Any) -> HandWorker:
        """A worker with these image transports, known to the horde."""
        made = HandWorker(
            self.horde,
            self.model,
            chat_features=[*EVERYTHING, "images"],
            image_transports=list(transports),
            **({"name": f"{self.model}-{name}"} if name else {}),
            **declared,
        )
        assert made.pop() is None
        return made

    def body(self, *urls: str, text: str = "What do you see?", **fields: Any) -> Json:
        """A chat request with these images."""
        content = [{"type": "text", "text": text}, *(image_part(url) for url in urls)]
        return {"model": self.model, "messages": [{"role": "user", "content": content}], "max_tokens": 32} | fields

    def ask(self, *urls: str, text: str = "What do you see?", **fields: Any) -> Answered:
        """Submit it."""
        body = self.body(*urls, text=text, **fields)
        return call("POST", f"{self.horde.native}/api/v2/generate/chat/async", body)

    def status(self, request_id: str) -> Json:
        """Where the request stands."""
        answer = call("GET", f"{self.horde.native}/api/v2/generate/chat/status/{request_id}")
        assert answer.status == 200
        return answer.body

    def wait_for(self, request_id: str, *states: str, seconds: float = 30) -> Json:
        """Wait until the request is in one of these states."""
        wait_until(lambda: self.status(request_id)["state"] in states, seconds, f"request is not {states}")
        return self.status(request_id)

    def fault_of(self, *urls: str) -> Json:
        """Submit images that the horde takes and then refuses; the fault."""
        answer = self.ask(*urls)
        assert answer.status == 202, answer
        status = self.wait_for(answer.body["id"], "faulted", "queued", "processing")
        assert status["state"] == "faulted", status
        assert status["kudos"] == 0
        return dict(status["fault"])

    def cancel(self, request_id: str) -> None:
        """Cancel the request."""
        call("DELETE", f"{self.horde.native}/api/v2/generate/chat/status/{request_id}")

    def keys(self) -> list[str]:
        """Every folder that a request has in the store, as the rows say."""
        return [str(folder) for (folder,) in self.horde.query("SELECT folder FROM request_media")]


def images_in(job: Json) -> list[bytes]:
    """The files in a job, fetched with plain HTTP where it holds URLs."""
    payload = job["payload"]
    if "messages_url" in payload:
        payload = orjson.loads(fetched(payload["messages_url"]))
    urls = [
        part["image_url"]["url"]
        for message in payload["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]
    return [inlined(url) if url.startswith("data:") else fetched(url) for url in urls]


def inlined(url: str) -> bytes:
    """The bytes in a data URL."""
    head, _, data = url.partition(",")
    assert head == "data:image/jpeg;base64"
    return base64.b64decode(data, validate=True)


def fetched(url: str) -> bytes:
    """What a URL leads to, without any key."""
    with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 - a URL of ours
        return bytes(response.read())


def refused(url: str) -> int:
    """The status with which a URL is refused."""
    try:
        fetched(url)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return 200


__all__ = ["KEYS", "REPLY", "Seeing", "fetched", "images_in", "inlined", "refused"]
