"""Clients of a replicated horde that go on asking, and keep what became of every completion.

They retry only what the front's answer says may be tried again: an answer of its own whose status an SDK
retries, without `x-should-retry: false`. A cut connection, and an answer that is not the front's, is a failure.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aiohttp
import openai

from tests.support.horde import KEYS, MODEL, HordeProcesses

RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504})
"""Statuses that the OpenAI SDK tries again unless it is told not to."""

SDK_RETRIES = 2
SDK_PAUSE_SECONDS = 0.5
PATIENCE_SECONDS = 600.0
"""As long as the SDK waits."""

TEXT_POLL_SECONDS = 0.5
TEXT_MODEL = "koboldcpp/replicas"


@dataclass
class Outcomes:
    """What became of the completions: counts by kind, and what was said of those that failed or were cut."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def completed(self) -> int:
        """Completions that were delivered whole."""
        return self.counts.total()


@dataclass(frozen=True)
class Load:
    """How many clients of each kind ask at a time, and how long an answer takes."""

    plain: int = 4
    streams: int = 3
    texts: int = 2
    delay_seconds: float = 0.4
    pace_seconds: float = 0.1


class Cut(Exception):
    """A stream ended before its end, after it had begun."""


class Refused(Exception):
    """The front answered with an error; `may_retry` says whether it lets the client ask again."""

    def __init__(self, said: str, *, may_retry: bool) -> None:
        super().__init__(said)
        self.may_retry = may_retry


class Clients:
    """All the clients of one load, over one door."""

    def __init__(self, horde: HordeProcesses, load: Load) -> None:
        self.outcomes = Outcomes()
        self._load = load
        self._root = f"{horde.front}/api/v2/generate/text"
        # A connection a call: with no retries of its own it would meet those that a reload of nginx closes.
        self._openai = openai.AsyncOpenAI(
            base_url=f"{horde.front}/v1",
            api_key=KEYS.demo,
            max_retries=0,
            timeout=PATIENCE_SECONDS,
            default_headers={"Connection": "close"},
        )
        self._over = asyncio.Event()
        self._served = asyncio.Event()
        self._number = itertools.count()
        self._began = time.monotonic()

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Ask until the block is left; then every open completion is waited for."""
        # A connection a call, as most clients of the text routes have it.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        async with self._openai, aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
            bridge = asyncio.create_task(_TextBridge(self._root, http).serve(self._served))
            kinds: list[tuple[str, Callable[[str], Awaitable[None]]]] = [
                *[("plain", self._plain)] * self._load.plain,
                *[("stream", self._stream)] * self._load.streams,
                *[("text", lambda prompt: self._text(http, prompt))] * self._load.texts,
            ]
            clients = [asyncio.create_task(self._go_on(kind, ask)) for kind, ask in kinds]
            try:
                yield
            finally:
                self._over.set()
                await asyncio.gather(*clients)
                self._served.set()
                await bridge

    async def _go_on(self, kind: str, ask: Callable[[str], Awaitable[None]]) -> None:
        while not self._over.is_set():
            prompt, began = f"Completion {next(self._number)}, a {kind} one.", time.monotonic()
            try:
                await self._with_retries(prompt, ask)
            except Cut as error:
                self.outcomes.cut.append(self._said(kind, error))
            except Exception as error:  # noqa: BLE001 - whatever a client of the SDK would meet is what is counted
                self.outcomes.failed.append(self._said(kind, error))
            else:
                self.outcomes.counts[kind] += 1
            self.outcomes.slowest = max(self.outcomes.slowest, time.monotonic() - began)

    async def _with_retries(self, prompt: str, ask: Callable[[str], Awaitable[None]]) -> None:
        for left in reversed(range(SDK_RETRIES + 1)):
            try:
                await ask(prompt)
            except Refused as error:
                if not (left and error.may_retry):
                    raise
                self.outcomes.repeated.append(self._said("repeated", error))
                await asyncio.sleep(SDK_PAUSE_SECONDS)
            else:
                return

    def _said(self, kind: str, error: Exception) -> str:
        return f"{kind} after {time.monotonic() - self._began:.1f} s: {type(error).__name__}: {error}"[:300]

    async def _plain(self, prompt: str) -> None:
        with _Refusals():
            answer = await self._openai.chat.completions.create(
                **self._body(prompt, f"[[delay={self._load.delay_seconds}]]")
            )
        assert answer.choices[0].message.content == prompt

    async def _stream(self, prompt: str) -> None:
        with _Refusals():
            stream = await self._openai.chat.completions.create(
                **self._body(prompt, f"[[pace={self._load.pace_seconds}]]"), stream=True
            )
        said, finished = "", False
        try:
            async for chunk in stream:
                for choice in chunk.choices:
                    said += choice.delta.content or ""
                    finished = finished or choice.finish_reason == "stop"
        except Exception as error:
            raise Cut(f"{said!r}: {type(error).__name__}: {error}") from error
        if not finished:
            raise Cut(f"{said!r}: no end")
        assert said == prompt

    async def _text(self, http: aiohttp.ClientSession, prompt: str) -> None:
        body = {"prompt": prompt, "models": [TEXT_MODEL], "params": {"max_length": 32}}
        async with http.post(f"{self._root}/async", json=body, headers={"apikey": KEYS.demo}) as answer:
            given = await _own_json(answer)
        while True:
            async with http.get(f"{self._root}/status/{given['id']}") as answer:
                status = await _own_json(answer)
            if status["done"]:
                assert [one["text"] for one in status["generations"]] == [prompt[::-1]]
                return
            await asyncio.sleep(TEXT_POLL_SECONDS)

    def _body(self, prompt: str, marker: str) -> dict[str, Any]:
        return {"model": MODEL, "messages": [{"role": "user", "content": marker + prompt}], "max_tokens": 64}


class _Refusals:
    """Turns an answer of the front's own that is an error into what it says about a retry."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, openai.APIStatusError) and "x-request-id" in error.response.headers:
            told = error.response.headers.get("x-should-retry") != "false"
            may_retry = told and error.status_code in RETRIED
            raise Refused(f"{error.status_code} {error.message}", may_retry=may_retry) from error


async def _own_json(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    """The answer's body. Raises Refused for an error, which may be tried again where the horde said it."""
    if answer.status >= 400:
        is_own = "x-request-id" in answer.headers
        may_retry = is_own and answer.status in RETRIED and answer.headers.get("x-should-retry") != "false"
        raise Refused(f"{answer.status} {(await answer.text())[:200]}", may_retry=may_retry)
    return dict(await answer.json())


class _TextBridge:
    """A koboldcpp-like bridge that writes prompts backwards, and that goes on after whatever goes wrong."""

    def __init__(self, root: str, http: aiohttp.ClientSession) -> None:
        self._root = root
        self._http = http
        self._pop = {"name": f"Bridge {uuid4().hex[:8]}", "models": [TEXT_MODEL], "max_length": 512, "wait": 2}

    async def serve(self, over: asyncio.Event) -> None:
        """Pop and submit until it is over. A submit that was not answered is sent again, as scribes do."""
        while not over.is_set():
            job = await self._post("pop", {**self._pop, "max_context_length": 8192})
            if job is None or not job["id"]:
                await asyncio.sleep(0.1)
                continue
            done = {"id": job["id"], "generation": job["payload"]["prompt"][::-1], "state": "ok"}
            while await self._post("submit", done) is None:  # noqa: ASYNC110 - a horde that comes back rings nobody
                await asyncio.sleep(0.5)

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        try:
            async with self._http.post(f"{self._root}/{path}", json=body, headers={"apikey": KEYS.worker}) as answer:
                return None if answer.status >= 500 else dict(await answer.json())
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
