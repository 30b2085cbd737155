"""A koboldcpp-like bridge with a model of its own, and the text client that asks for it, over one door of a horde."""

from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import urllib3

from tests.support.horde import KEYS, HordeProcesses

KOBOLD_AGENT = "KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp"

Json = dict[str, Any]


class TextBridge:
    """Pops, submits and asks; what it asked and nobody finished is cancelled when it closes."""

    def __init__(self, horde: HordeProcesses, root: str) -> None:
        self.horde = horde
        self.root = root
        self.model = f"koboldcpp/Flow-8B-{uuid4().hex[:8]}"
        self.asked: list[str] = []
        self._http = urllib3.PoolManager(timeout=60, maxsize=8)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for request_id in self.asked:
            self.cancel(request_id)
        self._http.clear()

    def send(
        self,
        method: str,
        path: str,
        body: Json | bytes | None = None,
        *,
        key: str | None = None,
        headers: Json | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """Call a route below `/api/v2`, with no header that was not asked for."""
        sent = dict(headers or {}) | ({"apikey": key} if key else {})
        url = f"{self.root}/api/v2{path}"
        if isinstance(body, bytes):
            return self._http.request(method, url, body=body, headers=sent)
        return self._http.request(method, url, json=body, headers=sent)

    def post(self, path: str, body: Json, key: str = KEYS.worker) -> urllib3.BaseHTTPResponse:
        """Post to a text route."""
        return self.send("POST", f"/generate/text/{path}", body, key=key)

    def pop(self, key: str = KEYS.worker, **more: Any) -> urllib3.BaseHTTPResponse:
        """Pop as koboldcpp does, without being held."""
        body = {
            "name": f"Box {self.model}",
            "models": [self.model],
            "max_length": 512,
            "max_context_length": 8192,
            "priority_usernames": [],
            "softprompts": [],
            "bridge_agent": KOBOLD_AGENT,
            "wait": 0,
        }
        return self.post("pop", body | more, key)

    def ask(self, key: str = KEYS.demo, **more: Any) -> str:
        """Ask for the bridge's model: the request's id."""
        body = {"prompt": "Once upon", "models": [self.model], "gui_settings": True}
        answer = self.post("async", body | more, key)
        assert answer.status == 202, answer.data
        self.asked.append(answer.json()["id"])
        return self.asked[-1]

    def cancel(self, request_id: str) -> Json:
        """Cancel without a key."""
        return dict(self.send("DELETE", f"/generate/text/status/{request_id}").json())

    def status(self, request_id: str) -> Json:
        """The status, read without a key."""
        answer = self.send("GET", f"/generate/text/status/{request_id}")
        assert answer.status == 200, answer.data
        return dict(answer.json())

    def submit(self, job: str, text: str = " a time") -> urllib3.BaseHTTPResponse:
        """Submit a job's text."""
        return self.post("submit", {"id": job, "generation": text, "state": "ok"})

    def serve(self) -> Json:
        """Pop a job and submit its text: the job."""
        job = dict(self.pop().json())
        assert job["id"], job
        assert self.submit(job["id"]).status == 200
        return job
