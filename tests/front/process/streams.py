"""A client that reads a stream event by event."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson

PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


class Stream:
    """An open stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.comments = 0

    async def event(self) -> dict[str, Any] | None:
        """The next event; None for [DONE]. Comments are counted."""
        while True:
            raw = await self.response.content.readuntil(b"\n\n")
            if raw.startswith(b":"):
                self.comments += 1
                continue
            data = raw.removeprefix(b"data: ")
            assert data != raw
            assert b"\n" not in data.removesuffix(b"\n\n")
            return None if data == b"[DONE]\n\n" else dict(orjson.loads(data))

    async def delta(self) -> dict[str, Any]:
        """The delta of the next event."""
        event = await self.event()
        assert event is not None
        delta: dict[str, Any] = event["choices"][0]["delta"]
        return delta

    async def text(self, wanted: str, key: str = "content") -> None:
        """Read on until the deltas say exactly this."""
        got = ""
        while got != wanted:
            got += (await self.delta())[key]
            assert wanted.startswith(got), got

    async def rest(self) -> list[dict[str, Any]]:
        """All events to the end, which is [DONE] and nothing behind it."""
        events = []
        while (event := await self.event()) is not None:
            events.append(event)
        assert await self.response.content.read() == b""
        return events


def content_of(events: list[dict[str, Any]], key: str = "content") -> str:
    """What the deltas of some events say together."""
    return "".join(choice["delta"].get(key) or "" for event in events for choice in event.get("choices", ()))


@asynccontextmanager
async def opened(client: aiohttp.ClientSession, url: str, **changes: Any) -> AsyncIterator[Stream]:
    """A stream whose role chunk was read."""
    async with client.post(url + PATH, json={**BODY, **changes}) as response:
        assert response.status == 200
        stream = Stream(response)
        assert await stream.delta() == {"role": "assistant", "content": ""}
        yield stream
