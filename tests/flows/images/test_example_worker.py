"""The OpenAI SDK at one end, the worker that volunteers run at the other, a vision backend behind it (issue: images).

The backend is scripted; what counts is the bytes that it is given.
"""

import asyncio
from typing import Any
from uuid import uuid4

import openai
import pytest

from tests.flows.images.seeing import KEYS, Seeing, inlined
from tests.support.file_server import FileServer
from tests.support.horde import HordeProcesses
from tests.support.pictures import BLUE, RED, data_url, image_part, is_near, noise, opened, picture
from tests.support.scripted_backend import BackendShape, ScriptedBackend, running_backend
from tests.support.services import wait_until
from tests.tools.chat_worker_example.worker_process import running_worker

MODEL_SECONDS = 60


def content_of(*urls: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": "Two colours?"}, *map(image_part, urls)]}]


def environment_of(horde: HordeProcesses, backend: ScriptedBackend, transports: str) -> dict[str, str]:
    """Settings of a worker that serves this backend."""
    return {
        "HORDE_URL": horde.front,
        "HORDE_API_KEY": KEYS.worker,
        "BACKEND_URL": backend.url,
        "MODEL_NAME": backend.shape.model,
        "WORKER_NAME": f"of {backend.shape.model}",
        "IMAGE_TOKENS": "64",
        "IMAGE_TRANSPORTS": transports,
    }


async def answered(horde: HordeProcesses, transports: str, messages: Any) -> tuple[str, ScriptedBackend]:
    """The answer of a worker of this test's own with these transports, and its backend."""
    client, model = horde.openai(), f"vision-{uuid4().hex[:8]}"

    def online() -> bool:
        return model in {each.id for each in client.models.list()}

    def ask() -> str:
        reply = client.chat.completions.create(model=model, messages=messages, max_tokens=32)
        return str(reply.choices[0].message.content)

    async with (
        running_backend(BackendShape(model=model, vision=True)) as backend,
        running_worker(**environment_of(horde, backend, transports)),
    ):
        await asyncio.to_thread(wait_until, online, MODEL_SECONDS, "the worker does not come online")
        return await asyncio.to_thread(ask), backend


def given_to(backend: ScriptedBackend) -> list[dict[str, Any]]:
    """The image parts of the last call."""
    [message] = backend.requests[-1]["messages"]
    return [part["image_url"] for part in message["content"] if part["type"] == "image_url"]


@pytest.mark.parametrize("transports", ["url", "base64", "url,base64,messages_url"])
async def test_a_data_url_and_an_http_url_reach_the_backend_as_the_same_jpeg_bytes(
    horde: HordeProcesses, files: FileServer, transports: str
) -> None:
    remote = files.serve("/vision.webp", picture("WEBP", size=(80, 60)), "image/webp")
    messages = content_of(data_url(picture()), remote)
    messages[0]["content"][1]["image_url"]["detail"] = "low"
    answer, backend = await answered(horde, transports, messages)
    assert answer == "Two colours?"
    parts = given_to(backend)
    assert [part.get("detail") for part in parts] == ["low", None]
    for part, size in zip(parts, [(64, 48), (80, 60)], strict=True):
        image = opened(inlined(part["url"]))
        assert (image.format, image.size) == ("JPEG", size)
        assert is_near(image.getpixel((30, 4)), RED)
        assert is_near(image.getpixel((30, 44)), BLUE)


async def test_an_offloaded_conversation_reaches_the_backend_with_its_images(seeing: Seeing) -> None:
    """Above OFFLOAD_BYTES; the worker begins to pop once the object is there, so that it gets its URL."""
    seeing.worker("url", "base64", "messages_url")
    accepted = await asyncio.to_thread(seeing.ask, data_url(noise((400, 300))), text="Two colours?")
    assert accepted.status == 202, accepted
    offloaded = "SELECT 1 FROM request_media WHERE request_id = :id AND offloaded_at IS NOT NULL"

    def is_offloaded() -> bool:
        return bool(seeing.horde.query(offloaded, id=accepted.body["id"]))

    await asyncio.to_thread(wait_until, is_offloaded, 30, "the messages are not offloaded")
    async with running_backend(BackendShape(model=seeing.model, vision=True)) as backend:
        settings = environment_of(seeing.horde, backend, "base64,messages_url")
        async with running_worker(**settings) as worker:
            assert (await worker.event("job_popped"))["offloaded"] is True
            await worker.event("job_done")
    status = seeing.status(accepted.body["id"])
    assert [each["message"]["content"] for each in status["generations"]] == ["Two colours?"]
    assert [opened(inlined(part["url"])).size for part in given_to(backend)] == [(400, 300)]


async def test_an_image_that_cannot_be_used_never_reaches_the_backend(horde: HordeProcesses) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        await answered(horde, "url", content_of(data_url(noise((300, 300))[:2000])))
    assert refusal.value.code == "image_parse_error"
