"""A scripted native API: the worker's whole view of a horde, small enough to hold in the head."""

import asyncio
import socket
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Answer = tuple[int, Json]

LOST: Answer = (0, {})
"""In place of an answer: the call is taken in, and the connection closes without a word."""

DEADLINE_SECONDS = 20.0


@dataclass
class ScriptedHorde:
    """Gives jobs out on pop, records every call, and answers as scripted."""

    url: str = ""
    pops: list[Json] = field(default_factory=list)
    submits: list[Json] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
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
        return web.json_response({"id": None, "payload": {}, **(job or {}), "declaration_warnings": []})

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


def _hang_up(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


@asynccontextmanager
async def running_horde() -> AsyncIterator[ScriptedHorde]:
    """Serves a horde on a free port in this event loop."""
    horde = ScriptedHorde()
    app = web.Application()
    app.router.add_post("/api/v2/generate/text/pop", horde.pop)
    app.router.add_post("/api/v2/generate/text/submit", horde.submit)
    listener = socket.create_server(("127.0.0.1", 0))
    horde.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        yield horde
    finally:
        await runner.cleanup()
