"""What a job only points to: a conversation under `messages_url`, images under signed URLs.

Images are fetched here and given to the backend inline, so that it needs no way to the
horde's storage, and a failed fetch is known as one.
"""

import base64
from collections.abc import Callable

import aiohttp

from .backend import parse_json
from .chat import Json
from .waiting import Backoff

FETCH_SECONDS = 20.0
FETCH_TRIES = 3
LARGEST_FETCH = 64 * 2**20
JPEG = b"\xff\xd8\xff"
"""How every image begins that the horde has prepared."""


class FetchFailed(Exception):
    """Something that the job points to could not be had; `code` is the fault code of details D5."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Media:
    """Fetches over one session. URLs are signed, so no key goes with them."""

    def __init__(self, session: aiohttp.ClientSession, pause: Callable[[], Backoff] = Backoff) -> None:
        self._session = session
        self._pause = pause

    async def messages(self, payload: Json) -> list[Json]:
        """The job's conversation with its images inline. Raises FetchFailed."""
        messages = payload.get("messages")
        if payload.get("messages_url"):
            messages = await self._offloaded(payload["messages_url"])
        if not isinstance(messages, list):
            raise FetchFailed("messages_fetch_failed", "the job carries no messages")
        return [await self._with_images(message) for message in messages]

    async def _offloaded(self, url: str) -> object:
        body = parse_json(await self._fetch(url, "messages_fetch_failed"))
        return body.get("messages") if isinstance(body, dict) else None

    async def _with_images(self, message: Json) -> Json:
        if not isinstance(message.get("content"), list):
            return message
        return {**message, "content": [await self._inline(part) for part in message["content"]]}

    async def _inline(self, part: Json) -> Json:
        if part.get("type") != "image_url" or part["image_url"]["url"].startswith("data:"):
            return part
        image = await self._fetch(part["image_url"]["url"], "image_fetch_failed")
        if not image.startswith(JPEG):
            raise FetchFailed("image_fetch_failed", "an image is not a JPEG")
        text = base64.b64encode(image).decode()
        return {**part, "image_url": {**part["image_url"], "url": f"data:image/jpeg;base64,{text}"}}

    async def _fetch(self, url: str, code: str) -> bytes:
        """The body under a URL; a passing failure is tried again."""
        backoff, reason = self._pause(), "never tried"
        for attempt in range(FETCH_TRIES):
            if attempt:
                await backoff.wait()
            try:
                async with self._session.get(url, timeout=aiohttp.ClientTimeout(total=FETCH_SECONDS)) as response:
                    if response.status == 200:
                        return await _bounded(response, code)
                    reason = f"status {response.status}"
                    if response.status < 500:
                        break
            except (TimeoutError, aiohttp.ClientError) as error:
                reason = type(error).__name__
            except ValueError:
                reason = "not a URL"
                break
        raise FetchFailed(code, reason)


async def _bounded(response: aiohttp.ClientResponse, code: str) -> bytes:
    pieces, length = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        length += len(piece)
        if length > LARGEST_FETCH:
            raise FetchFailed(code, f"longer than {LARGEST_FETCH >> 20} MiB")
    return b"".join(pieces)
