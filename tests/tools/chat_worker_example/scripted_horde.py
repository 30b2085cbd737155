"""A scripted native API: the worker's whole view of a horde, small enough to hold in the head."""

import asyncio
import socket
import ssl
import uuid
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Answer = tuple[int, Json]

LOST: Answer = (0, {})
"""In place of an answer: the call is taken in, and the connection closes without a word."""

DEADLINE_SECONDS = 60.0


@dataclass
class Lease:
    """What the horde keeps of one job's progress (details D6): a real one's answers, in few lines."""

    entries: list[Json] = field(default_factory=list)
    heartbeats: int = 0
    cancelled: bool = False
    ended: bool = False
    lost: bool = False
    cap: int = 2**16
    """Characters; more are not taken."""

    @property
    def text(self) -> str:
        """The content that was posted."""
        return "".join(entry["delta"] for entry in self.entries)

    @property
    def reasoning(self) -> str:
        """The reasoning that was posted."""
        return "".join(entry.get("reasoning_delta", "") for entry in self.entries)

    def answer(self, body: Json) -> Answer:
        """The answer to a post."""
        if self.lost:
            return 404, {"rc": "LeaseNotFound", "message": "No lease"}
        if self.ended:
            return 410, {"rc": "LeaseEnded", "message": "Ended"}
        if "seq" not in body:
            self.heartbeats += 1
        elif body["seq"] > len(self.entries):
            return 409, {"rc": "ProgressOutOfStep", "message": "Resync", "next_seq": len(self.entries)}
        elif len(self.text) + len(body["delta"]) > self.cap:
            return 413, {"rc": "ProgressTooLong", "message": "Enough"}
        elif body["seq"] == len(self.entries):
            self.entries.append(body)
        return 200, {"cancelled": self.cancelled, "next_seq": len(self.entries)}


@dataclass
class ScriptedHorde:
    """Gives jobs out on pop, records every call, and answers as scripted."""

    url: str = ""
    pops: list[Json] = field(default_factory=list)
    submits: list[Json] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    posts: list[Json] = field(default_factory=list)
    leases: defaultdict[str, Lease] = field(default_factory=lambda: defaultdict(Lease))
    restored: list[Json] = field(default_factory=list)
    progress_script: deque[Answer] = field(default_factory=deque)
    """Answers for the next progress posts; LOST takes the post in and loses the answer."""
    skipped: Json = field(default_factory=dict)
    account: Json = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    """What storage holds, by name."""
    pop_script: deque[Answer] = field(default_factory=deque)
    """Answers for the next pops; LOST gives a job out and loses the answer."""
    submit_script: deque[Answer] = field(default_factory=deque)
    _waiting: deque[Json] = field(default_factory=deque)
    _given: dict[str, Json] = field(default_factory=dict)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def give(self, *messages: str, ttl: float = 60, **payload: Any) -> str:
        """Queues a chat job whose conversation is these user messages; returns its id."""
        job_id = str(uuid.uuid4())
        conversation = [{"role": "user", "content": text} for text in messages]
        sampling = {
            "temperature": 1,
            "top_p": 1,
            "presence_penalty": 0,
            "frequency_penalty": 0,
            "stop": [],
            "seed": None,
        }
        job = {"messages": conversation, **sampling, "max_tokens": 64, "stream": False, **payload}
        async with self._changed:
            self._waiting.append({"id": job_id, "is_chat": True, "ttl": ttl, "payload": job})
            self._changed.notify_all()
        return job_id

    async def until(self, holds: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
        """Waits until the condition holds, looked at after every call; TimeoutError after so many seconds."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(holds)

    async def submitted(self, count: int = 1, seconds: float = DEADLINE_SECONDS) -> list[Json]:
        """The submits, once there are so many."""
        await self.until(lambda: len(self.submits) >= count, seconds)
        return self.submits

    async def _record(self, calls: list[Json], request: web.Request) -> Json:
        body: Json = await request.json()
        async with self._changed:
            calls.append(body)
            self.keys.append(request.headers.get("apikey"))
            self._changed.notify_all()
        return body

    async def pop(self, request: web.Request) -> web.Response:
        """The pop route: held until there is a job; the same pop_key gets the same job again."""
        body = await self._record(self.pops, request)
        scripted = self.pop_script.popleft() if self.pop_script else None
        if scripted is not None and scripted is not LOST:
            return web.json_response(scripted[1], status=scripted[0])
        job = self._given.get(body["pop_key"]) or await self._next_job(body["wait"])
        if job is not None:
            self._given[body["pop_key"]] = job
        if scripted is LOST:
            _hang_up(request)
        empty = {"id": None, "payload": {}, "skipped": self.skipped}
        return web.json_response({**empty, **(job or {}), "declaration_warnings": []})

    async def _next_job(self, seconds: float) -> Json | None:
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: bool(self._waiting))
                return self._waiting.popleft()
        except TimeoutError:
            return None

    async def submit(self, request: web.Request) -> web.Response:
        """The submit route: 200 with a reward unless scripted otherwise."""
        await self._record(self.submits, request)
        status, body = self.submit_script.popleft() if self.submit_script else (200, {"reward": 1.5})
        if status == 0:
            _hang_up(request)
        return web.json_response(body, status=status or 200)

    async def progress(self, request: web.Request) -> web.Response:
        """The progress route, by the job's lease unless scripted otherwise."""
        body = await self._record(self.posts, request)
        scripted = self.progress_script.popleft() if self.progress_script else None
        status, answer = self.leases[body["id"]].answer(body) if scripted in (None, LOST) else scripted
        async with self._changed:
            self._changed.notify_all()
        if scripted is LOST:
            _hang_up(request)
        return web.json_response(answer, status=status)

    async def lease(self, request: web.Request) -> web.Response:
        """The route that restores a lease."""
        body = await self._record(self.restored, request)
        self.leases[body["id"]] = Lease()
        return web.json_response({"next_seq": 0})

    async def find_user(self, request: web.Request) -> web.Response:
        """The account of the key."""
        return web.json_response(self.account)

    async def stored(self, request: web.Request) -> web.Response:
        """A file of the storage; one that is not there is refused as S3 refuses."""
        body = self.files.get(request.match_info["name"])
        return web.Response(status=403) if body is None else web.Response(body=body)


def _hang_up(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


def _app(horde: ScriptedHorde) -> web.Application:
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/api/v2/generate/text/pop", horde.pop)
    app.router.add_post("/api/v2/generate/text/progress", horde.progress)
    app.router.add_post("/api/v2/generate/text/lease", horde.lease)
    app.router.add_post("/api/v2/generate/text/submit", horde.submit)
    app.router.add_get("/api/v2/find_user", horde.find_user)
    app.router.add_get("/storage/{name}", horde.stored)
    return app


@asynccontextmanager
async def running_horde(
    tls: ssl.SSLContext | None = None, horde: ScriptedHorde | None = None, port: int = 0
) -> AsyncIterator[ScriptedHorde]:
    """Serves a horde in this event loop, on a free port unless one is given."""
    horde = horde or ScriptedHorde()
    listener = socket.create_server(("127.0.0.1", port))
    horde.url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
    runner = web.AppRunner(_app(horde), access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    await web.SockSite(runner, listener, ssl_context=tls).start()
    try:
        yield horde
    finally:
        await runner.cleanup()
