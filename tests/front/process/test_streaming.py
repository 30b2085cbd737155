"""A streamed chat request through the real front (front F4, contract reference 4.2, 4.3)."""

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from tests.front.process.conftest import Signals
from tests.front.process.front_process import FrontProcess
from tests.front.process.scripted_native import ScriptedNative, generation_of
from tests.front.process.streams import Stream, content_of

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"a":1}'}}
PATH = "/v1/chat/completions"
STATUS = "/api/v2/generate/chat/status/"


def message(**changes: Any) -> dict[str, Any]:
    return {**generation_of()["message"], **changes}


def chunks_of(raw: bytes) -> list[dict[str, Any]]:
    """The chunks of a whole stream, which must end with [DONE] and hold nothing but data lines and comments."""
    lines = [line for line in raw.decode().split("\n\n") if line and not line.startswith(":")]
    assert lines[-1] == "data: [DONE]"
    assert all(line.startswith("data: {") and "\n" not in line for line in lines[:-1])
    return [orjson.loads(line.removeprefix("data: ")) for line in lines[:-1]]


@pytest.fixture
def stream(front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession) -> Any:
    """Stream a request whose generation is given, and return its chunks."""

    async def run(body: dict[str, Any], **generation: Any) -> list[dict[str, Any]]:
        asking = asyncio.create_task(client.post(front.url + PATH, json=body))
        request_id = await native.submitted()
        native.finish(request_id, **generation)
        signals.chat(request_id)
        async with await asking as response:
            assert response.status == 200
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert response.headers["cache-control"] == "no-cache, no-transform"
            assert response.headers["x-accel-buffering"] == "no"
            return chunks_of(await response.read())

    return run


async def test_a_reply_is_streamed_role_first_and_finish_last(stream: Any, native: ScriptedNative) -> None:
    chunks = await stream(BODY)
    request_id = await native.submitted()
    assert {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks} == {
        (f"chatcmpl-{request_id}", "chat.completion.chunk", "demo-8b")
    }
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "Hello!"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]
    assert all("usage" not in chunk for chunk in chunks)
    assert ["x_horde" in chunk for chunk in chunks] == [False, False, True]
    assert chunks[-1]["x_horde"]["request_id"] == request_id


async def test_usage_comes_in_a_chunk_of_its_own_when_it_is_asked_for(stream: Any) -> None:
    *before, last = await stream({**BODY, "stream_options": {"include_usage": True}})
    assert all(chunk["usage"] is None for chunk in before)
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert last["x_horde"]["kudos"] == 11.5


async def test_reasoning_comes_before_the_content(stream: Any) -> None:
    chunks = await stream(BODY, message=message(reasoning_content="hm"))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[1:3] == [{"reasoning_content": "hm"}, {"content": "Hello!"}]


async def test_tool_calls_come_in_one_chunk_with_everything(stream: Any) -> None:
    chunks = await stream(
        {**BODY, "tools": [TOOL]},
        message=message(content=None, tool_calls=[CALL, {**CALL, "id": "call_2"}]),
        finish_reason="tool_calls",
    )
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": None},
        {"tool_calls": [{"index": 0, **CALL}, {"index": 1, **CALL, "id": "call_2"}]},
        {},
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_text_that_looks_like_an_event_arrives_as_text(stream: Any) -> None:
    text = "x\n\ndata: [DONE]\n\n\r\u2028\u0085👩‍👩‍👧‍👦"
    chunks = await stream(BODY, message=message(content=text))
    assert chunks[1]["choices"][0]["delta"] == {"content": text}


async def test_the_role_is_said_while_the_request_still_waits_and_comments_keep_the_line_open(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with client.post(front.url + PATH, json=BODY) as response:
        first = await response.content.readuntil(b"\n\n")
        assert orjson.loads(first.removeprefix(b"data: "))["choices"][0]["delta"]["role"] == "assistant"
        assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        request_id = await native.submitted()
        native.finish(request_id)
        signals.chat(request_id)
        assert (await response.content.read()).endswith(b"data: [DONE]\n\n")


async def test_a_stream_of_several_models_names_only_the_one_that_generated(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    body = {"models": ["a-1b", "demo-8b"], "messages": BODY["messages"], "stream": True}
    async with client.post(front.url + PATH, json=body) as response:
        assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        request_id = await native.submitted()
        native.finish(request_id)
        signals.chat(request_id)
        chunks = chunks_of(await response.content.read())
    assert {chunk["model"] for chunk in chunks} == {"demo-8b"}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"


async def test_a_stream_of_several_models_is_live_and_names_each_time_the_one_that_writes(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    body = {"models": ["a-1b", "demo-8b"], "messages": BODY["messages"], "stream": True}
    async with client.post(live_front.url + PATH, json=body) as response:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello", model="demo-8b")
        stream = Stream(response)
        opening, delta = await stream.event(), await stream.event()
        native.finish(request_id, message=message(content="Hello!"))
        signals.chat(request_id)
        chunks = [opening, delta, *await stream.rest()]
    assert [chunk["choices"][0]["delta"] for chunk in chunks if chunk] == [
        {"role": "assistant", "content": ""},
        {"content": "Hello"},
        {"content": "!"},
        {},
    ]
    assert {chunk["model"] for chunk in chunks if chunk} == {"demo-8b"}


async def test_text_of_which_the_model_is_not_known_waits_for_the_reply_of_several(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    body = {"models": ["a-1b", "demo-8b"], "messages": BODY["messages"], "stream": True}
    async with client.post(live_front.url + PATH, json=body) as response:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello")
        signals.text(request_id, 1, " there")
        assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        native.finish(request_id, message=message(content="Hello there"))
        signals.chat(request_id)
        chunks = await Stream(response).rest()
    assert content_of(chunks) == "Hello there"
    assert {chunk["model"] for chunk in chunks} == {"demo-8b"}


async def test_an_error_after_the_headers_is_one_event_without_a_choice(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with client.post(front.url + PATH, json=BODY) as response:
        assert response.status == 200
        request_id = await native.submitted()
        native.set_status(request_id, state="faulted", fault={"rc": "x", "message": "it broke", "param": None})
        signals.chat(request_id)
        chunks = chunks_of(await response.read())
    assert "choices" not in chunks[-1]
    assert chunks[-1]["error"]["code"] == "ChatRequestFaulted"
    assert all(choice["finish_reason"] is None for chunk in chunks[:-1] for choice in chunk["choices"])


async def test_a_reply_without_the_promised_shape_ends_in_an_error_event(stream: Any) -> None:
    *_, last = await stream(BODY, message=message(tool_calls=[{"id": "call_1"}]))
    assert last["error"]["code"] == "NoGeneration"


async def test_a_client_that_leaves_a_stream_cancels_its_request(
    front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    response = await client.post(front.url + PATH, json=BODY)
    request_id = await native.submitted()
    await response.content.readuntil(b"\n\n")
    response.close()
    await native.called("DELETE", STATUS + request_id, seconds=2)


async def test_the_official_sdk_reads_the_stream(front: FrontProcess, native: ScriptedNative, signals: Signals) -> None:
    import openai

    async with openai.AsyncOpenAI(base_url=f"{front.url}/v1", api_key="a-key", max_retries=0) as sdk:
        asking = asyncio.create_task(
            sdk.chat.completions.create(
                model="demo-8b",
                messages=[{"role": "user", "content": "Hi"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        request_id = await native.submitted()
        native.finish(request_id)
        signals.chat(request_id)
        chunks = [chunk async for chunk in await asking]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello!"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 10
