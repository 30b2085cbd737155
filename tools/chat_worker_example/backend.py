"""The backend behind this worker: any server of OpenAI's /v1/chat/completions.

What llama.cpp, koboldcpp, vLLM, TabbyAPI and Ollama have beyond that is in backends.py.
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from .chat import Json, UnusableCompletion
from .stream import Assembly

COUNT_SECONDS = 30.0
"""The counter routes and the descriptions of a server answer well within this."""

LARGEST_ANSWER = 8 * 2**20
"""Bytes of one answer: twice what the horde takes of a reply."""

CONTEXT_REFUSALS = ("exceed_context_size", "context_length_exceeded", "maximum context length", "context length")
"""How llama.cpp, OpenAI, vLLM and TabbyAPI name a conversation that does not fit."""

OnDelta = Callable[[str, str], None]
"""Takes the next piece of the content and of the reasoning."""


class BackendError(Exception):
    """The backend gave no usable answer; `status` is None when it gave none at all.

    `reason` is fit for the log: it holds no text of the conversation.
    """

    def __init__(self, reason: str, *, status: int | None = None, overflow: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.overflow = overflow


class BackendUnreachable(BackendError):
    """No connection to the backend could be made, so nothing of the call was begun."""


class Backend:
    """HTTP calls to one backend. The caller bounds a generation's time; other calls have a bound of their own."""

    kind = "openai"
    enforces: frozenset[str] = frozenset()
    """Guarantees that this kind of server gives with the feature, because of how it samples."""

    def __init__(self, session: aiohttp.ClientSession, url: str, api_key: str | None = None) -> None:
        self._session = session
        self._url = url
        self._api_key = api_key

    async def complete(self, call: Json, on_delta: OnDelta | None = None) -> Json:
        """One chat completion; with `stream` in the call its pieces go to `on_delta` as they come.

        Raises BackendError.
        """
        answer = await self._request("POST", "/v1/chat/completions", call, seconds=None, on_delta=on_delta)
        return _object(answer, "/v1/chat/completions")

    async def models(self) -> list[Json]:
        """The models that the backend lists."""
        listed = (await self.read("/v1/models")).get("data")
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []

    async def context(self, model: str) -> int | None:
        """The context of one conversation in tokens, where the server tells it."""
        return next(
            (size(entry.get("max_model_len")) for entry in await self.models() if entry.get("id") == model), None
        )

    async def count_tokens(self, call: Json) -> int:
        """Tokens of the call's prompt as generation will see them: its own template, its own tokenizer, BOS."""
        raise BackendError("this kind of backend has no counter route", status=404)

    async def is_up(self) -> bool:
        """Whether the backend answers at all; a route that it lacks is an answer too."""
        try:
            await self.read("/v1/models")
        except BackendError as error:
            return error.status is not None and error.status < 500
        return True

    async def read(self, path: str) -> Json:
        """The JSON object under a path."""
        return _object(await self._request("GET", path, None, COUNT_SECONDS), path)

    async def ask(self, path: str, body: Json) -> Json:
        """The JSON object that a path answers to a body."""
        return _object(await self._request("POST", path, body, COUNT_SECONDS), path)

    async def _request(
        self, method: str, path: str, body: Json | None, seconds: float | None, on_delta: OnDelta | None = None
    ) -> Any:
        timeout = aiohttp.ClientTimeout(total=seconds, connect=COUNT_SECONDS)
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        try:
            async with self._session.request(
                method, self._url + path, json=body, headers=headers, timeout=timeout
            ) as response:
                if response.status == 200 and response.content_type == "text/event-stream":
                    return await _streamed(response, on_delta)
                answer = await _parsed(response)
        except TimeoutError:
            raise BackendError(f"{path} gave no answer in time") from None
        except aiohttp.ClientConnectorError as error:
            raise BackendUnreachable(f"{path} cannot be reached: {type(error).__name__}") from None
        except aiohttp.ClientError as error:
            raise BackendError(f"{path} cannot be reached: {type(error).__name__}") from None
        if response.status != 200:
            overflow = response.status == 400 and any(name in str(answer) for name in CONTEXT_REFUSALS)
            raise BackendError(f"{path} answered {response.status}", status=response.status, overflow=overflow)
        return answer


def _object(answer: Any, path: str) -> Json:
    if not isinstance(answer, dict):
        raise BackendError(f"{path} answered something that is not a JSON object", status=200)
    return answer


def size(value: object) -> int | None:
    """A number of tokens that a server tells of itself, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    read = 0
    async for piece in response.content.iter_any():
        read += len(piece)
        if read > LARGEST_ANSWER:
            raise BackendError(f"an answer is longer than {LARGEST_ANSWER >> 20} MiB", status=response.status)
        yield piece


async def _parsed(response: aiohttp.ClientResponse) -> Any:
    return parse_json(b"".join([piece async for piece in _pieces(response)]))


def parse_json(body: bytes) -> Any:
    """The JSON value of a body, or None where it is none: wrong bytes are never guessed at."""
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


async def _streamed(response: aiohttp.ClientResponse, on_delta: OnDelta | None) -> Json:
    """Reads server-sent events to their end and puts the completion together."""
    assembly = Assembly()
    try:
        async for chunk in _chunks(response):
            content, reasoning = assembly.add(chunk)
            if on_delta is not None and (content or reasoning):
                on_delta(content, reasoning)
        return assembly.completion()
    except UnusableCompletion as error:
        raise BackendError(str(error), status=200) from None


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[Json]:
    async for line in _lines(response):
        if not line.startswith(b"data:"):
            continue
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            return
        chunk = parse_json(data)
        if not isinstance(chunk, dict) or "error" in chunk:
            raise BackendError("the stream broke off with an error", status=200)
        yield chunk


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in _pieces(response):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
    yield rest
