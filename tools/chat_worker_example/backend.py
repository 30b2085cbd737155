"""The backend behind this worker: any OpenAI-compatible server, and llama.cpp's extra routes."""

from typing import Any

import aiohttp

from .chat import Json

COUNT_SECONDS = 30.0
"""The counter routes and the descriptions of a server answer well within this."""

CONTEXT_REFUSALS = ("exceed_context_size", "context_length_exceeded", "maximum context length")
"""How llama.cpp, OpenAI and vLLM name a conversation that does not fit."""


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

    def __init__(self, session: aiohttp.ClientSession, url: str, api_key: str | None = None) -> None:
        self._session = session
        self._url = url
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    async def complete(self, call: Json) -> Json:
        """One chat completion."""
        return await self._json("POST", "/v1/chat/completions", call, seconds=None)

    async def models(self) -> list[Json]:
        """The models that the backend lists."""
        listed = (await self._json("GET", "/v1/models")).get("data")
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []

    async def props(self) -> Json:
        """The description that llama.cpp's server gives of itself."""
        return await self._json("GET", "/props")

    async def count_tokens(self, call: Json) -> int:
        """Tokens of the call's prompt as generation will see them: its own template, its own tokenizer, BOS."""
        rendered = await self._json("POST", "/apply-template", call)
        text = {"content": rendered.get("prompt"), "add_special": True, "parse_special": True}
        tokens = (await self._json("POST", "/tokenize", text)).get("tokens")
        if not isinstance(tokens, list):
            raise BackendError("/tokenize answered without tokens", status=200)
        return len(tokens)

    async def is_up(self) -> bool:
        """Whether the backend answers at all; a route that it lacks is an answer too."""
        try:
            await self._json("GET", "/v1/models")
        except BackendError as error:
            return error.status is not None and error.status < 500
        return True

    async def _json(
        self, method: str, path: str, body: Json | None = None, seconds: float | None = COUNT_SECONDS
    ) -> Json:
        timeout = aiohttp.ClientTimeout(total=seconds, connect=COUNT_SECONDS)
        try:
            async with self._session.request(
                method, self._url + path, json=body, headers=self._headers, timeout=timeout
            ) as response:
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
        if not isinstance(answer, dict):
            raise BackendError(f"{path} answered something that is not a JSON object", status=200)
        return answer


async def _parsed(response: aiohttp.ClientResponse) -> Any:
    try:
        return await response.json(content_type=None)
    except ValueError:
        return None
