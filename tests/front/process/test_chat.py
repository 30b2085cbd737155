"""A plain chat request through the real front, from its submit to its answer (front F1, F3)."""

import asyncio
import re
from typing import Any

import aiohttp
import pytest

from app.domain.redis_keys import chat_channel
from tests.front.process.conftest import Signals
from tests.front.process.front_process import PASSKEY, FrontProcess
from tests.front.process.scripted_native import ScriptedNative, generation_of
from tests.front.process.waiting import eventually

BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"


@pytest.fixture
def ask(front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession) -> Any:
    """Ask, deliver a generation, and return the answer's status, headers and JSON."""

    async def run(body: dict[str, Any], generation: dict[str, Any] | None = None, **headers: str) -> Any:
        asking = asyncio.create_task(client.post(front.url + PATH, json=body, headers=headers))
        request_id = await native.submitted()
        native.finish(request_id, **(generation or {}))
        signals.chat(request_id)
        async with await asking as response:
            return response, await response.json()

    return run


async def test_a_reply_is_answered_in_openais_shape(ask: Any, native: ScriptedNative) -> None:
    response, body = await ask(BODY)
    request_id = await native.submitted()
    assert response.status == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    assert isinstance(body.pop("created"), int)
    assert body == {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "model": "demo-8b",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello!", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        "system_fingerprint": None,
        "x_horde": {
            "request_id": request_id,
            "kudos": 11.5,
            "charge_basis": "output_estimate",
            "estimated_usage": [],
            "worker": {"id": "w-1", "name": "Box One"},
            "queue_seconds": 0.25,
            "conformance": "strict",
        },
    }


async def test_a_submit_carries_the_key_the_operation_key_and_the_vouching(ask: Any, native: ScriptedNative) -> None:
    response, _ = await ask(BODY, Authorization="Bearer a-good-key-of-22-chars")
    (call,) = native.calls("POST", "/api/v2/generate/chat/async")
    assert call.headers["apikey"] == "a-good-key-of-22-chars"
    assert len(call.headers["operation-key"]) >= 22
    assert call.headers["proxy-authorization"] == PASSKEY
    assert call.headers["front-authorization"] == PASSKEY
    assert call.headers["proxied-for"] == "127.0.0.1"
    assert call.headers["horde-deadline"] == "4"
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", call.headers["horde-request-id"]
    )
    assert call.headers["x-request-id"] == response.headers["x-request-id"]


async def test_a_submit_leaves_out_what_the_drop_table_names(ask: Any, native: ScriptedNative) -> None:
    await ask({**BODY, "n": 1, "store": False, "temperature": 0.5, "max_tokens": None})
    (call,) = native.calls("POST", "/api/v2/generate/chat/async")
    assert call.json() == {**BODY, "temperature": 0.5, "max_tokens": None}


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer "}, {"Authorization": ""}])
async def test_a_request_without_a_key_is_anonymous(ask: Any, native: ScriptedNative, header: dict[str, str]) -> None:
    await ask(BODY, **header)
    (call,) = native.calls("POST", "/api/v2/generate/chat/async")
    assert call.headers["apikey"] == "0000000000"


async def test_reasoning_is_hidden_where_the_client_asks_for_it(ask: Any) -> None:
    message = generation_of()["message"] | {"reasoning_content": "hm"}
    _, body = await ask({**BODY, "horde": {"include_reasoning": False}}, {"message": message})
    assert "reasoning_content" not in body["choices"][0]["message"]


async def test_counts_that_the_worker_left_out_are_estimated_and_marked(ask: Any) -> None:
    _, body = await ask(BODY, {"usage": None})
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    assert body["x_horde"]["estimated_usage"] == ["prompt_tokens", "completion_tokens", "total_tokens"]


async def test_the_status_is_read_once_for_a_signalled_reply(ask: Any, native: ScriptedNative) -> None:
    await ask(BODY)
    path = f"/api/v2/generate/chat/status/{await native.submitted()}"
    assert len(native.calls("GET", path)) == 1
    assert native.calls("DELETE", path) == []


async def test_the_front_listens_before_it_submits_and_not_after_the_answer(
    front: FrontProcess, native: ScriptedNative, signals: Signals, client: aiohttp.ClientSession
) -> None:
    asking = asyncio.create_task(client.post(front.url + PATH, json=BODY))
    request_id = await native.submitted()
    assert chat_channel(request_id) in signals.channels()
    native.finish(request_id)
    signals.chat(request_id)
    async with await asking:
        pass
    await eventually(lambda: chat_channel(request_id) not in signals.channels(), "it still listens")


async def test_a_request_that_got_another_id_is_answered_under_it(ask: Any, native: ScriptedNative) -> None:
    native.own_ids = True
    native.initial = {
        "state": "done",
        "done": True,
        "finished": 1,
        "generations": [generation_of()],
        "is_possible": False,
    }
    response, body = await ask(BODY)
    assert response.status == 200
    assert body["id"].startswith("chatcmpl-own-")


async def test_the_official_sdk_reads_the_answer(front: FrontProcess, native: ScriptedNative, signals: Signals) -> None:
    import openai

    async with openai.AsyncOpenAI(base_url=f"{front.url}/v1", api_key="a-key", max_retries=0) as sdk:
        asking = asyncio.create_task(
            sdk.chat.completions.create(model="demo-8b", messages=[{"role": "user", "content": "Hi"}])
        )
        request_id = await native.submitted()
        native.finish(request_id)
        signals.chat(request_id)
        completion = await asking
    assert completion.choices[0].message.content == "Hello!"
    assert completion._request_id is not None
