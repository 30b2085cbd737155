"""A streamed request in a running horde, and the worker that has it in hand."""

from itertools import count
from typing import Any, cast

from redis import Redis

from tests.support.hand_worker import Answered, HandWorker, Json, call
from tests.support.horde import KEYS, HordeProcesses

_NUMBERS = count()


class StreamedJob:
    """A streamed request and the worker that has it."""

    def __init__(self, horde: HordeProcesses, **changes: Any) -> None:
        self.horde = horde
        self.worker = HandWorker(horde, f"progress-{next(_NUMBERS)}")
        self.worker.pop()
        body = {
            "model": self.worker.model,
            "messages": [{"role": "user", "content": "Tell me."}],
            "stream": True,
            "max_tokens": 512,
        }
        asked = call("POST", f"{horde.native}/api/v2/generate/chat/async", body | changes, KEYS.demo)
        assert asked.status == 202, asked
        self.request_id = str(asked.body["id"])
        self.job = self.worker.wait_for_job()
        self.id = str(self.job["id"])

    def to(self, route: str, body: Json | bytes, key: str = KEYS.worker) -> Answered:
        """Call a worker's route for this job."""
        sent = body | {"id": self.id} if isinstance(body, dict) else body
        return call("POST", f"{self.horde.native}/api/v2/generate/text/{route}", sent, key)

    def post(self, seq: int, delta: str, key: str = KEYS.worker) -> Answered:
        """Post text."""
        return self.to("progress", {"seq": seq, "delta": delta}, key)

    def entries(self, redis: Redis) -> list[dict[bytes, bytes]]:
        """The fields of the entries in the request's stream."""
        found = redis.xrange(f"horde:chat:stream:{self.request_id}")
        return [fields for _, fields in cast("list[tuple[bytes, dict[bytes, bytes]]]", found)]

    def cancel(self, body: Json | None = None) -> Answered:
        """Cancel as the client."""
        return call("DELETE", f"{self.horde.native}/api/v2/generate/chat/status/{self.request_id}", body, KEYS.demo)
