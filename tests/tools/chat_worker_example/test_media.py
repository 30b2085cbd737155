"""What a job points to: offloaded conversations and images."""

import base64
from typing import Any

import aiohttp
import pytest

from tests.support.scripted_backend import BackendShape, ScriptedBackend, running_backend
from tests.tools.chat_worker_example.scripted_horde import ScriptedHorde
from tests.tools.chat_worker_example.worker_process import running_worker
from tools.chat_worker_example.media import FetchFailed, Media
from tools.chat_worker_example.waiting import Backoff

JPEG = b"\xff\xd8\xff\xe0 a picture"
INLINE = "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()


def with_picture(url: str) -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": parts}]


async def answered(horde: ScriptedHorde, environment: dict[str, str], **payload: Any) -> tuple[Any, ScriptedBackend]:
    """The submit of one job of a worker that sees pictures, and its backend."""
    async with running_backend(BackendShape(vision=True)) as backend:
        async with running_worker(**environment | {"BACKEND_URL": backend.url, "IMAGE_TOKENS": "64"}):
            await horde.give(**payload)
            [submit] = await horde.submitted()
        return submit, backend


@pytest.mark.parametrize("transport", ["url", "base64"])
async def test_a_picture_reaches_the_backend_inline(
    horde: ScriptedHorde, environment: dict[str, str], transport: str
) -> None:
    horde.files["picture"] = JPEG
    url = f"{horde.url}/storage/picture" if transport == "url" else INLINE
    submit, backend = await answered(horde, environment, messages=with_picture(url))
    assert (submit["state"], submit["message"]["content"]) == ("ok", "what is it?")
    assert backend.requests[-1]["messages"] == with_picture(INLINE)
    assert {"url", "base64", "messages_url"} == set(horde.pops[0]["image_transports"])
    assert "images" in horde.pops[0]["chat_features"]


async def test_an_offloaded_conversation_is_fetched(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    horde.files["conversation"] = b'{"messages": [{"role": "user", "content": "from far away"}]}'
    url = f"{horde.url}/storage/conversation"
    submit, _ = await answered(horde, environment, messages=None, messages_url=url)
    assert submit["message"]["content"] == "from far away"


@pytest.mark.parametrize(
    ("payload", "files", "fault"),
    [
        ({"messages": with_picture("HORDE/storage/gone")}, {}, "image_fetch_failed"),
        ({"messages": with_picture("HORDE/storage/page")}, {"page": b"<html>"}, "image_fetch_failed"),
        ({"messages": with_picture("http://127.0.0.1:9/picture")}, {}, "image_fetch_failed"),
        ({"messages": with_picture("ftp://nowhere")}, {}, "image_fetch_failed"),
        ({"messages": None, "messages_url": "HORDE/storage/gone"}, {}, "messages_fetch_failed"),
        ({"messages": None, "messages_url": "HORDE/storage/page"}, {"page": b"<html>"}, "messages_fetch_failed"),
        ({"messages": None, "messages_url": "HORDE/storage/list"}, {"list": b"[]"}, "messages_fetch_failed"),
        ({"messages": None}, {}, "messages_fetch_failed"),
    ],
)
async def test_what_cannot_be_had_is_a_fault_of_its_own_code(
    horde: ScriptedHorde, payload: dict[str, Any], files: dict[str, bytes], fault: str
) -> None:
    horde.files.update(files)
    there = {name: _at(value, horde.url) for name, value in payload.items()}
    async with aiohttp.ClientSession() as session:
        with pytest.raises(FetchFailed) as failure:
            await Media(session, lambda: Backoff(first=0.01)).messages(there)
    assert failure.value.code == fault


async def test_a_job_without_its_picture_is_faulted(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    submit, _ = await answered(horde, environment, messages=with_picture(f"{horde.url}/storage/gone"))
    assert (submit["state"], submit["fault"]) == ("faulted", "image_fetch_failed")


def _at(value: Any, url: str) -> Any:
    if isinstance(value, str):
        return value.replace("HORDE", url)
    return with_picture(_at(value[0]["content"][1]["image_url"]["url"], url)) if value else value
