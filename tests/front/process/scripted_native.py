"""A small native API that does what a test scripts, over real HTTP, in a thread of its own."""

import asyncio
import threading
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from aiohttp import web

from tests.front.process.waiting import eventually

CHAT = "/api/v2/generate/chat"
SUBMIT = f"{CHAT}/async"
POP = "/api/v2/generate/text/pop"
RELEASE = "/internal/release"
STATUSES = "/internal/statuses"
CANCELS = "/internal/cancels"

Script = Callable[["Received", web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Received:
    """One call as it arrived."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body's JSON."""
        return orjson.loads(self.body)


def status_of(request_id: str, **changes: Any) -> dict[str, Any]:
    """The status of a request that waits in the queue, with changes."""
    return {
        "id": request_id,
        "state": "queued",
        "done": False,
        "faulted": False,
        "finished": 0,
        "processing": 0,
        "restarted": 0,
        "waiting": 1,
        "queue_position": 1,
        "wait_time": 0,
        "queue_info_at": None,
        "is_possible": True,
        "eligible_workers": 1,
        "eligible_threads": 1,
        "declaration_gap": None,
        "limits_gap": None,
        "fault": None,
        "kudos": 0,
        "charge_basis": "output_estimate",
        "generations": [],
        **changes,
    }


def generation_of(**changes: Any) -> dict[str, Any]:
    """A delivered generation, with changes."""
    return {
        "id": "6f2f61d4-0000-4000-8000-000000000000",
        "message": {"role": "assistant", "content": "Hello!", "reasoning_content": None, "tool_calls": None},
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        "model": "demo-8b",
        "worker_id": "w-1",
        "worker_name": "Box One",
        "state": "ok",
        "queue_seconds": 0.25,
        "kudos": 10.5,
        **changes,
    }


def finished_at_once() -> dict[str, Any]:
    """The first status of a request that is answered already."""
    return {"state": "done", "done": True, "finished": 1, "waiting": 0, "kudos": 11.5, "generations": [generation_of()]}


def answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Script:
    """A script that answers with JSON."""

    async def run(_received: Received, _request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=orjson.dumps(body), content_type="application/json", headers=headers)

    return run


def refusal(status: int, rc: str, message: str = "no", headers: dict[str, str] | None = None) -> Script:
    """A script that refuses as the native API does."""
    return answer(status, {"message": message, "rc": rc, "param": None, "metadata": None}, headers)


@dataclass
class ScriptedNative:
    """What the tests script and look at. Scripts of a route are used up one a call; then the default answers."""

    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    initial: dict[str, Any] = field(default_factory=dict)
    scripts: dict[str, deque[Script]] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=list)
    own_ids: bool = False
    begun: set[str] = field(default_factory=set)
    port: int = 0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        if not ready.wait(10):
            raise AssertionError("the scripted native API did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join(10)

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        """Forget everything that a test scripted and did."""
        self.statuses.clear()
        self.initial = {}
        self.scripts.clear()
        self.received.clear()
        self.models = [{"name": "demo-8b", "workers": 1, "threads": 1, "max_length": 512}]
        self.own_ids = False
        self.begun = set()

    def script(self, route: str, *scripts: Script) -> None:
        """Answer the next calls of a route, named by method and path prefix, with these."""
        self.scripts.setdefault(route, deque()).extend(scripts)

    def calls(self, method: str, prefix: str) -> list[Received]:
        """The calls that came."""
        return [call for call in tuple(self.received) if call.method == method and call.path.startswith(prefix)]

    async def called(self, method: str, prefix: str, times: int = 1, seconds: float = 10.0) -> list[Received]:
        """The calls, once there are as many."""
        await eventually(
            lambda: len(self.calls(method, prefix)) >= times, f"{times} calls of {method} {prefix}", seconds
        )
        return self.calls(method, prefix)

    def cancelled(self) -> set[str]:
        """The requests that were asked to be cancelled, by themselves or in one call with others."""
        alone = {call.path.rpartition("/")[2] for call in self.calls("DELETE", f"{CHAT}/status/")}
        return alone.union(*(call.json()["ids"] for call in self.calls("POST", CANCELS)))

    async def submitted(self) -> str:
        """The id of the first request that came in."""
        calls = await self.called("POST", SUBMIT)
        return calls[0].headers["horde-request-id"]

    def set_status(self, request_id: str, **changes: Any) -> None:
        """What the status says from now on."""
        self.statuses[request_id] = status_of(request_id, **changes)

    def finish(self, request_id: str, **changes: Any) -> None:
        """Deliver a generation, silently."""
        self.set_status(
            request_id,
            state="done",
            done=True,
            finished=1,
            waiting=0,
            is_possible=False,
            kudos=11.5,
            generations=[generation_of(**changes)],
        )

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        runner = self._loop.run_until_complete(self._serve())
        ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _serve(self) -> web.AppRunner:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # Bodies are taken as they come: a client's compressed one, which the front passes on, may be none.
        runner = web.AppRunner(app, shutdown_timeout=0.1, auto_decompress=False)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        self.port = runner.addresses[0][1]
        return runner

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        received = Received(
            method=request.method,
            path=request.raw_path.partition("?")[0],
            query=request.raw_path.partition("?")[2],
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await request.read(),
        )
        self.received.append(received)
        for route, waiting in self.scripts.items():
            method, _, prefix = route.partition(" ")
            if waiting and received.method == method and received.path.startswith(prefix):
                return await waiting.popleft()(received, request)
        return await self._default(received)(received, request)

    def _default(self, received: Received) -> Script:
        if received.path == SUBMIT:
            return self._accept(received)
        if received.path.startswith(f"{CHAT}/status/"):
            return self._status(received.method, received.path.rpartition("/")[2])
        if received.path == f"{CHAT}/models":
            return answer(200, self.models)
        if received.path == POP:
            return answer(200, {"id": None, "payload": {}, "skipped": {}})
        if received.path == STATUSES:
            return answer(200, {"statuses": self._changed(received.json()["seen"])})
        if received.path == CANCELS:
            return answer(200, {"cancelled": self._unstarted(received.json()["ids"])})
        if received.path in {RELEASE, "/healthz"}:
            return answer(200, {})
        return refusal(404, "NotFound")

    def _accept(self, received: Received) -> Script:
        request_id = received.headers["horde-request-id"]
        replayed = request_id in self.statuses
        if self.own_ids:
            request_id = "own-" + request_id[4:]
        # A test may have said meanwhile what became of it.
        self.statuses.setdefault(request_id, status_of(request_id, **self.initial))
        return answer(200 if replayed else 202, {"id": request_id, "kudos": 12, "status": self.statuses[request_id]})

    def _status(self, method: str, request_id: str) -> Script:
        if request_id not in self.statuses:
            return refusal(404, "RequestNotFound")
        if method == "DELETE":
            self._cancel(request_id)
        return answer(200, self.statuses[request_id])

    def _cancel(self, request_id: str) -> bool:
        open_still = self.statuses.get(request_id, {}).get("state") in {"preparing", "queued", "processing"}
        if open_still:
            self.set_status(request_id, state="cancelled", done=True, waiting=0)
        return open_still

    def _unstarted(self, ids: list[str]) -> list[str]:
        return [each for each in ids if each not in self.begun and self._cancel(each)]

    def _changed(self, seen: dict[str, str | None]) -> dict[str, dict[str, Any] | None]:
        found = {each: self.statuses.get(each) for each in seen}
        versions = {each: str(zlib.crc32(orjson.dumps(status))) for each, status in found.items()}
        return {
            each: None if status is None else {**status, "version": versions[each]}
            for each, status in found.items()
            if status is None or versions[each] != seen[each]
        }
