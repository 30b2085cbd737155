"""Clients that ask a horde steadily, each in a way of its own, and keep what they were told."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import aiohttp
import orjson

from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.pictures import data_url, picture

Json = dict[str, Any]

PATIENCE_SECONDS = 75.0
"""A call that is open this long hangs: the horde answers by a request's deadline."""

PAUSE_SECONDS = 0.4
POLL_SECONDS = 0.5
HIGHEST_TOKENS = 16
TROUBLE = frozenset({0, 502, 503, 504})
"""What a client may be told while something is broken; 0 is a connection that broke."""

DONE = b"[DONE]"
TORN = "torn"
"""The code of a stream that ended well in HTTP and not in what it said."""


@dataclass
class Asked:
    """One request, and what its client was told last. `status` 0 means that the connection broke."""

    kind: str
    text: str
    status: int = 0
    code: str = ""
    content: str | None = None
    request_id: str | None = None
    left: bool = False
    """Whether the client went away or cancelled."""
    hung: bool = False
    ended: float = 0.0


@dataclass
class Clients:
    """Everybody who asks, until `over` is set."""

    horde: HordeProcesses
    http: aiohttp.ClientSession
    hand_model: str
    remote_picture: str
    chance: random.Random
    run: str = field(default_factory=lambda: uuid4().hex[:8])
    asked: list[Asked] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: Iterator[int] = field(default_factory=count)

    async def go_on(self) -> None:
        """Ask until the run is over."""
        ways = [self.chat] * 3 + [self.stream] * 3 + [self.text] * 2 + [self.leave, self.cancel, self.poll, self.image]
        async with asyncio.TaskGroup() as group:
            for way in ways:
                group.create_task(self._repeat(way))

    async def chat(self, asked: Asked) -> None:
        """A plain chat at the front."""
        await self._complete(asked, self._body(asked, self._model()))

    async def stream(self, asked: Asked) -> None:
        """A streamed chat at the front, read to its end."""
        await self._complete(asked, self._body(asked, self._model(), marks="[[pace=0.1]]") | {"stream": True})

    async def leave(self, asked: Asked) -> None:
        """A chat whose client hangs up in its middle."""
        asked.left = True
        body = self._body(asked, MODEL, delay=2.0) | {"stream": self.chance.random() < 0.5}
        async with asyncio.timeout(self.chance.uniform(0.2, 2.0)):
            await self._complete(asked, body)

    async def image(self, asked: Asked) -> None:
        """A chat with a picture, inline or to be fetched."""
        url = self.remote_picture if self.chance.random() < 0.5 else data_url(picture())
        body = self._body(asked, self.hand_model)
        body["messages"][0]["content"] = [
            {"type": "text", "text": asked.text},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        await self._complete(asked, body)

    async def text(self, asked: Asked) -> None:
        """A text request at the native API, polled until it has ended."""
        params = {"max_length": HIGHEST_TOKENS, "n": 1}
        await self._submit(asked, "text", {"prompt": asked.text, "models": [self.hand_model], "params": params})
        await self._wait_for(asked, "text")

    async def poll(self, asked: Asked) -> None:
        """A chat at the native API, submitted with an operation key until it is taken or refused, and polled."""
        body = self._body(asked, MODEL) | {"operation_key": uuid4().hex}
        while not await self._tolerated(asked, self._submit(asked, "chat", body)) or asked.status in TROUBLE:
            if self.over.is_set():
                return
            await asyncio.sleep(POLL_SECONDS)
        await self._wait_for(asked, "chat")

    async def cancel(self, asked: Asked) -> None:
        """A chat at the native API that is cancelled some time after its submit, until the horde says so."""
        await self._submit(asked, "chat", self._body(asked, self._model(), delay=1.0))
        asked.left = True
        await asyncio.sleep(self.chance.uniform(0, 2))
        while asked.request_id is not None and not self.over.is_set():
            if await self._tolerated(asked, self._cancel(asked)) and asked.status not in TROUBLE:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _repeat(self, way: Callable[[Asked], Awaitable[None]]) -> None:
        while not self.over.is_set():
            asked = Asked(way.__name__, f"chaos-{self.run}-{next(self._numbers):06}.")
            self.asked.append(asked)
            await self._tolerated(asked, way(asked))
            asked.ended = time.time()
            await asyncio.sleep(self.chance.uniform(0, 2 * PAUSE_SECONDS))

    async def _tolerated(self, asked: Asked, call: Awaitable[None]) -> bool:
        """Whether a call was answered whole; one that broke off is noted and no error."""
        try:
            await call
        except TimeoutError:
            asked.status, asked.hung = 0, not asked.left
        except aiohttp.ClientError as error:
            asked.status, asked.code = 0, type(error).__name__
        else:
            return True
        return False

    def _model(self) -> str:
        return self.chance.choice([MODEL, self.hand_model])

    def _body(self, asked: Asked, model: str, *, delay: float = 0.6, marks: str = "") -> Json:
        content = f"[[delay={self.chance.uniform(0, delay):.2f}]]{marks}{asked.text}"
        return {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": HIGHEST_TOKENS}

    async def _complete(self, asked: Asked, body: Json) -> None:
        headers = {"Authorization": f"Bearer {KEYS.demo}"}
        url = f"{self.horde.front}/v1/chat/completions"
        async with self.http.post(url, json=body, headers=headers) as answer:
            raw = await answer.read()
            asked.status = answer.status
            if answer.status != 200:
                asked.code = _code(raw)
            elif body.get("stream"):
                _read_stream(asked, raw)
            else:
                asked.content = orjson.loads(raw)["choices"][0]["message"]["content"]

    async def _submit(self, asked: Asked, kind: str, body: Json) -> None:
        url = f"{self.horde.native}/api/v2/generate/{kind}/async"
        async with self.http.post(url, json=body, headers={"apikey": KEYS.demo}) as answer:
            raw = await answer.read()
            asked.status, asked.code = answer.status, ""
            if answer.status in {200, 202}:
                asked.request_id = orjson.loads(raw)["id"]
            else:
                asked.code = _code(raw)

    async def _cancel(self, asked: Asked) -> None:
        url = f"{self.horde.native}/api/v2/generate/chat/status/{asked.request_id}"
        async with self.http.delete(url, headers={"apikey": KEYS.demo}) as answer:
            raw = await answer.read()
            asked.status, asked.code = answer.status, "" if answer.status == 200 else _code(raw)

    async def _wait_for(self, asked: Asked, kind: str) -> None:
        """Ask for the status until the request or the run has ended."""
        while asked.request_id is not None and not self.over.is_set():
            if await self._tolerated(asked, self._read_status(asked, kind)) and asked.status not in TROUBLE | {202}:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _read_status(self, asked: Asked, kind: str) -> None:
        """Read where a request stands; 202 is one that goes on."""
        url = f"{self.horde.native}/api/v2/generate/{kind}/status/{asked.request_id}"
        async with self.http.get(url, headers={"apikey": KEYS.demo}) as answer:
            raw = await answer.read()
            asked.status, asked.code = answer.status, "" if answer.status == 200 else _code(raw)
            if answer.status != 200:
                return
            status = orjson.loads(raw)
            if status["done"]:
                reply = status["generations"][0]
                asked.content = reply["text"] if kind == "text" else reply["message"]["content"]
            elif not status["faulted"]:
                asked.status = 202


def _read_stream(asked: Asked, raw: bytes) -> None:
    """Put the chunks of a whole stream together; an error event, or a missing end, is kept as its code."""
    events = [line[6:] for line in raw.split(b"\n") if line.startswith(b"data: ")]
    chunks = [orjson.loads(event) for event in events if event != DONE]
    errors = [chunk["error"] for chunk in chunks if "error" in chunk]
    if errors:
        asked.code = str(errors[0]["code"])
    elif DONE not in events:
        asked.code = TORN
    else:
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        asked.content = "".join(delta.get("content") or "" for delta in deltas)


def _code(raw: bytes) -> str:
    """The return code in an error's body, or the beginning of a body that has none."""
    try:
        body = orjson.loads(raw)
        error = body.get("error", body)
        return str(error.get("code") or error["rc"])
    except (ValueError, AttributeError, KeyError):
        return raw[:80].decode(errors="replace")
