"""A worker that the test itself is: it pops and submits over HTTP, and may reply what no backend would."""

import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import orjson

from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until

Json = dict[str, Any]

EVERYTHING = (
    "tools", "json_object", "json_schema", "reasoning", "prompt_overflow_refused", "tool_choice_enforced",
    "tool_choice_auto_faithful", "json_object_enforced", "json_schema_enforced",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answered:
    """Status and JSON of an answer."""

    status: int
    body: Json


def call(method: str, url: str, body: bytes | Json | None = None, key: str = KEYS.demo) -> Answered:
    """One HTTP call with a key of the horde, as native clients and OpenAI's send it."""
    data = orjson.dumps(body) if isinstance(body, dict) else body
    headers = {"apikey": key, "Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - a URL of ours
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - a URL of ours
            return Answered(response.status, orjson.loads(response.read()))
    except urllib.error.HTTPError as refused:
        with refused:
            return Answered(refused.code, orjson.loads(refused.read()))


class HandWorker:
    """Serves a model of its own, so that no other worker takes its jobs."""

    def __init__(self, horde: HordeProcesses, model: str, **declared: object) -> None:
        self.horde = horde
        self.model = model
        self.declared = declared

    def pop(self) -> Json | None:
        """The next job, or None."""
        return self._popped(self.horde.native, self._declaration())

    def held_pop(self, seconds: int) -> Json | None:
        """The next job that comes within so many seconds, asked for once at the front."""
        return self._popped(self.horde.front, self._declaration() | {"wait": seconds})

    def _declaration(self) -> Json:
        return {
            "name": f"hand-{self.model}",
            "models": [self.model],
            "model_id": self.model,
            "chat_jobs": True,
            "prompt_jobs": False,
            "chat_features": EVERYTHING,
            "max_length": 1024,
            "max_context_length": 8192,
            "threads": 1,
        } | self.declared

    @staticmethod
    def _popped(face: str, declaration: Json) -> Json | None:
        job = call("POST", f"{face}/api/v2/generate/text/pop", declaration, KEYS.worker)
        assert job.status == 200, job
        return job.body if job.body["id"] else None

    def wait_for_job(self, seconds: float = 30) -> Json:
        """The next job, once there is one."""
        jobs: list[Json] = []

        def popped() -> bool:
            job = self.pop()
            if job is not None:
                jobs.append(job)
            return job is not None

        wait_until(popped, seconds, f"no job for {self.model}")
        return jobs[0]

    def submit(self, job_id: str, reply: bytes | Json) -> Answered:
        """Submit a reply until its verdict is known."""
        body = orjson.dumps(reply | {"id": job_id}) if isinstance(reply, dict) else reply
        answers: list[Answered] = []

        def judged() -> bool:
            answers.append(call("POST", f"{self.horde.native}/api/v2/generate/text/submit", body, KEYS.worker))
            return answers[-1].status != 202

        wait_until(judged, 30, f"no verdict on {job_id}")
        return answers[-1]
