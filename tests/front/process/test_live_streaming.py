"""Live deltas through the real front, from entries in a real Redis (front F2, F4, details D6, D15, D17)."""

import asyncio
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.progress_entries import ProgressEntry
from tests.front.process.conftest import Signals
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import ScriptedNative
from tests.front.process.streams import BODY, PATH, Stream, content_of, opened
from tests.front.process.test_streaming import message
from tests.front.texts import EMOJI, split_texts
from tests.support.services import RunningService

STATUS = "/api/v2/generate/chat/status/"
FAMILY = EMOJI[0]


def finish(native: ScriptedNative, signals: Signals, request_id: str, content: str, reasoning: str = "") -> None:
    native.finish(request_id, message=message(content=content, reasoning_content=reasoning))
    signals.chat(request_id)


async def test_text_arrives_as_it_is_posted_and_the_rest_with_the_reply(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello")
        assert await stream.delta() == {"content": "Hello"}
        signals.text(request_id, 1, " wor")
        assert await stream.delta() == {"content": " wor"}
        finish(native, signals, request_id, "Hello world")
        rest = await stream.rest()
    assert content_of(rest) == "ld"
    assert rest[-1]["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    assert rest[-1]["x_horde"]["request_id"] == request_id
    assert native.calls("DELETE", STATUS) == []


async def test_a_reply_that_was_posted_whole_adds_nothing_but_the_end(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url, stream_options={"include_usage": True}) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello!")
        await stream.text("Hello!")
        finish(native, signals, request_id, "Hello!")
        finish_chunk, usage_chunk = await stream.rest()
    assert finish_chunk["choices"][0]["finish_reason"] == "stop"
    assert finish_chunk["usage"] is None
    assert usage_chunk["choices"] == []
    assert usage_chunk["usage"]["total_tokens"] == 10
    assert usage_chunk["x_horde"]["kudos"] == 11.5


async def test_reasoning_is_streamed_before_the_content(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "", reasoning_delta="Let me ")
        assert await stream.delta() == {"reasoning_content": "Let me "}
        signals.text(request_id, 1, "Yes", reasoning_delta="think.")
        assert await stream.delta() == {"reasoning_content": "think."}
        assert await stream.delta() == {"content": "Yes"}
        finish(native, signals, request_id, "Yes", "Let me think.")
        assert content_of(await stream.rest()) == ""


async def test_reasoning_that_is_not_wanted_is_not_streamed(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url, horde={"include_reasoning": False}) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "", reasoning_delta="secret")
        signals.text(request_id, 1, "Yes")
        assert await stream.delta() == {"content": "Yes"}
        finish(native, signals, request_id, "Yes", "another secret")
        assert content_of(await stream.rest(), "reasoning_content") == ""


@pytest.mark.parametrize("final", ["Bonjour", "Hell", ""])
async def test_a_reply_that_does_not_begin_with_what_was_streamed_ends_in_one_error_event(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession, final: str
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello")
        await stream.text("Hello")
        finish(native, signals, request_id, final)
        (error,) = await stream.rest()
    assert error["error"]["code"] == "StreamDiverged"
    assert "choices" not in error


async def test_h55_a_worker_that_dies_and_another_ones_different_text_end_in_one_error_event(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello")
        await stream.text("Hello")
        signals.post(request_id, ProgressEntry(generation_id="g1", ended=True))
        signals.text(request_id, 0, "Bonjour", generation_id="g2")
        (error,) = await stream.rest()
    assert isinstance(error["error"]["message"], str)
    assert "choices" not in error
    await native.called("DELETE", STATUS + request_id)


async def test_a_second_worker_with_the_same_text_goes_on_with_it(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello")
        await stream.text("Hello")
        signals.post(request_id, ProgressEntry(generation_id="g1", ended=True))
        signals.text(request_id, 0, "Hel", generation_id="g2")
        signals.text(request_id, 1, "lo world", generation_id="g2")
        assert await stream.delta() == {"content": " world"}
        finish(native, signals, request_id, "Hello world")
        assert content_of(await stream.rest()) == ""


async def test_h61_a_client_that_leaves_in_mid_stream_cancels_and_tells_what_it_got(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello", reasoning_delta="hm")
        await stream.text("hm", "reasoning_content")
        await stream.text("Hello")
        stream.response.close()
    (cancel,) = await native.called("DELETE", STATUS + request_id, seconds=2)
    assert cancel.json() == {"relayed": {"generation_id": "g1", "content": "Hello", "reasoning_content": "hm"}}


async def test_a_client_that_leaves_before_any_text_cancels_without_a_body(
    live_front: FrontProcess, native: ScriptedNative, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        stream.response.close()
    (cancel,) = await native.called("DELETE", STATUS + request_id, seconds=2)
    assert cancel.body == b""


async def test_the_text_goes_on_while_the_native_api_is_slow_to_answer(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    released = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def slow(_received: Any, _request: Any) -> Any:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(released.wait(), loop))
        return aiohttp.web.Response(status=503)

    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        native.script(f"GET {STATUS}", slow)
        signals.chat(request_id)
        await native.called("GET", STATUS + request_id)
        signals.text(request_id, 0, "Hello")
        assert await stream.delta() == {"content": "Hello"}
        released.set()
        finish(native, signals, request_id, "Hello")
        assert content_of(await stream.rest()) == ""


async def test_h62_a_worker_that_stalls_in_mid_stream_ends_in_an_error_event_at_the_deadline(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, front.url) as stream:
        request_id = await native.submitted()
        native.set_status(request_id, state="processing", processing=1, waiting=0)
        signals.text(request_id, 0, "Hello")
        await stream.text("Hello")
        (error,) = await stream.rest()
    assert error["error"]["code"] == "DeadlineExceeded"
    assert stream.comments > 0
    await native.called("DELETE", STATUS + request_id)


async def test_posts_whose_rings_are_lost_and_a_redis_that_forgets_only_delay(
    native: ScriptedNative, valkey: RunningService, signals: Signals, tmp_path: Any, client: aiohttp.ClientSession
) -> None:
    quick = {"FALLBACK_POLL_SECONDS": "0.3", "STREAM_PACING": "false", "KEEP_ALIVE_SECONDS": "0.3"}
    with running_front(tmp_path, native.url, valkey.service.url, **quick) as front:
        wait_for_redis(front)
        async with opened(client, front.url) as stream:
            request_id = await native.submitted()
            signals.text(request_id, 0, "Hello", silently=True)
            await stream.text("Hello")
            signals.forget_everything()
            wait_for_redis(front)
            signals.text(request_id, 0, "Hello again", silently=True)
            await stream.text(" again")
            signals.forget_everything()
            native.finish(request_id, message=message(content="Hello again and again"))
            assert content_of(await stream.rest()) == " and again"


async def test_a_redis_that_is_gone_in_mid_stream_costs_nothing_but_the_liveliness(
    native: ScriptedNative, tmp_path_factory: pytest.TempPathFactory, client: aiohttp.ClientSession
) -> None:
    from launcher.services.valkey import Valkey
    from tests.support.services import free_port

    home = tmp_path_factory.mktemp("own-valkey")
    home.chmod(0o711)
    own = RunningService(Valkey(home / "redis", free_port(), "throw-away"), home)
    own.start()
    signals = Signals(own.service.url)
    try:
        with running_front(home, native.url, own.service.url, FALLBACK_POLL_SECONDS="0.5") as front:
            wait_for_redis(front)
            async with opened(client, front.url) as stream:
                request_id = await native.submitted()
                signals.text(request_id, 0, "Hello")
                await stream.text("Hello")
                signals.close()
                own.stop()
                native.finish(request_id, message=message(content="Hello world"))
                assert content_of(await stream.rest()) == " world"
    finally:
        own.stop()


async def test_with_pacing_a_post_is_spread_and_the_tail_comes_at_once(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    text = "A steady flow of text. " * 4
    async with opened(client, front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, text)
        first, second = await stream.delta(), await stream.delta()
        finish(native, signals, request_id, text)
        rest = await stream.rest()
    assert len(first["content"]) < len(text) / 2
    assert first["content"] + second["content"] + content_of(rest) == text
    assert sum(1 for event in rest if content_of([event])) <= 3


async def test_a_stopping_front_ends_its_live_streams_with_an_error_event(
    native: ScriptedNative, valkey: RunningService, signals: Signals, tmp_path: Any, client: aiohttp.ClientSession
) -> None:
    settings = {"DRAIN_SECONDS": "0", "STREAM_PACING": "false"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        wait_for_redis(front)
        async with opened(client, front.url) as stream:
            request_id = await native.submitted()
            signals.text(request_id, 0, "Hello")
            await stream.text("Hello")
            front.terminate()
            (error,) = await stream.rest()
        assert await asyncio.to_thread(front.wait, 10) == 0
        assert "Traceback" not in front.log.read_text()
    assert error["error"]["code"] == "service_unavailable"
    (cancel,) = await native.called("DELETE", STATUS + request_id)
    assert cancel.json()["relayed"]["content"] == "Hello"


async def test_many_streams_share_a_few_connections_and_reads(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    before = signals.connections()
    async with asyncio.TaskGroup() as group:
        streams = [group.create_task(client.post(live_front.url + PATH, json=BODY)) for _ in range(15)]
    calls = await native.called("POST", "/api/v2/generate/chat/async", 15)
    ids = [call.headers["horde-request-id"] for call in calls]
    for request_id in ids:
        signals.text(request_id, 0, "Hello")
    for task in streams:
        stream = Stream(task.result())
        await stream.delta()
        await stream.text("Hello")
    assert signals.connections() <= max(before, 8)
    for request_id in ids:
        finish(native, signals, request_id, "Hello")
    for task in streams:
        assert (await task.result().read()).endswith(b"data: [DONE]\n\n")


async def test_h43_no_character_is_damaged_however_the_worker_cuts_it(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    text = f"{FAMILY} ñ 漢"
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        for seq, character in enumerate(text):
            signals.text(request_id, seq, character)
        await stream.text(text)
        finish(native, signals, request_id, text)
        assert content_of(await stream.rest()) == ""


async def test_h46_a_character_torn_into_damaged_halves_is_repaired_by_the_reply(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "ok \ufffd")
        signals.text(request_id, 1, "\ufffd fine")
        await stream.text("ok ")
        finish(native, signals, request_id, "ok \N{GRINNING FACE} fine")
        assert content_of(await stream.rest()) == "\N{GRINNING FACE} fine"


async def test_h56_comments_between_deltas_do_not_disturb_the_official_sdk(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals
) -> None:
    import openai

    got = []
    asked: list[Any] = [{"role": "user", "content": "Hi"}]
    async with (
        openai.AsyncOpenAI(base_url=f"{live_front.url}/v1", api_key="a-key", max_retries=0) as sdk,
        sdk.chat.completions.stream(model="demo-8b", messages=asked) as stream,
    ):
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello")
        async for event in stream:
            if event.type == "content.delta":
                got.append(event.delta)
                if len(got) == 1:
                    asyncio.get_running_loop().call_later(0.7, finish, native, signals, request_id, "Hello world")
        final = await stream.get_final_completion()
    assert "".join(got) == "Hello world" == final.choices[0].message.content
    assert final.choices[0].finish_reason == "stop"


async def test_h16_every_chunk_has_the_same_id_and_the_role_comes_once(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    async with opened(client, live_front.url) as stream:
        request_id = await native.submitted()
        signals.text(request_id, 0, "Hello")
        first = await stream.event()
        finish(native, signals, request_id, "Hello!")
        chunks = [first or {}, *await stream.rest()]
    assert {chunk["id"] for chunk in chunks} == {f"chatcmpl-{request_id}"}
    assert all("role" not in chunk["choices"][0]["delta"] for chunk in chunks)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]


async def test_tools_and_structured_output_wait_for_the_whole_reply(
    live_front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    body = {**BODY, "response_format": {"type": "json_object"}}
    async with client.post(live_front.url + PATH, json=body) as response:
        request_id = await native.submitted()
        signals.text(request_id, 0, "{")
        assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        finish(native, signals, request_id, "{}")
        chunks = [event async for event in _events(Stream(response))]
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "{}"},
        {},
    ]


async def _events(stream: Stream) -> Any:
    for event in await stream.rest():
        yield event


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    posts=split_texts(6),
    pauses=st.lists(st.sampled_from((0.0, 0.0, 0.01, 0.06)), min_size=1, max_size=5),
    lost=st.sets(st.integers(0, 5), max_size=1),
    silent=st.sets(st.integers(0, 5), max_size=2),
    is_paced=st.booleans(),
)
def test_the_client_gets_the_final_reply_however_it_was_posted(
    front: FrontProcess,
    live_front: FrontProcess,
    native: ScriptedNative,
    signals: Signals,
    posts: tuple[str, list[str]],
    pauses: list[float],
    lost: set[int],
    silent: set[int],
    is_paced: bool,
) -> None:
    text, deltas = posts
    url = (front if is_paced else live_front).url
    native.reset()

    async def run() -> str:
        async with aiohttp.ClientSession() as client, opened(client, url) as stream:
            request_id = await native.submitted()
            for seq, delta in enumerate(deltas):
                if seq not in lost:
                    signals.text(request_id, seq, delta, silently=seq in silent)
                await asyncio.sleep(pauses[seq % len(pauses)])
            finish(native, signals, request_id, text)
            events = await stream.rest()
            assert all("\ufffd" in text or "\ufffd" not in content_of([event]) for event in events)
            return content_of(events)

    assert asyncio.run(run()) == text
