"""How a scripted backend streams, and the ways in which it spoils a reply that is otherwise right."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

Json = dict[str, Any]

PIECE = 3
"""Characters of one chunk of a stream."""

FLOOD = 10
"""How many times too much text a flood is."""

LORIS_SECONDS = 0.02


def spoil(reply: Json, chosen: Mapping[str, str], max_tokens: int) -> Json:
    """The reply, spoilt as the behaviours say."""
    message = reply["choices"][0]["message"]
    calls = message.get("tool_calls") or []
    if "flood" in chosen:
        message["content"] = "word " * (FLOOD * max_tokens)
    if "twin_ids" in chosen and calls:
        message["tool_calls"] = [calls[0], orjson.loads(orjson.dumps(calls[0]))]
    if "object_arguments" in chosen:
        for call in calls:
            call["function"]["arguments"] = orjson.loads(call["function"]["arguments"])
    if "wrong_usage" in chosen:
        reply["usage"] = {"prompt_tokens": -3, "completion_tokens": 10**9, "total_tokens": "many"}
    return reply


def body_of(reply: Json, chosen: Mapping[str, str]) -> bytes:
    """The reply's bytes; `bad_utf8` puts one into its content that no text can hold."""
    body = orjson.dumps(reply)
    return body.replace(b'"content":"', b'"content":"\xff', 1) if "bad_utf8" in chosen else body


async def trickle(request: web.Request) -> web.StreamResponse:
    """A slow loris: headers at once, then a blank now and then, for ever."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(LORIS_SECONDS)


async def stream(request: web.Request, reply: Json, chosen: Mapping[str, str], usage: bool) -> web.StreamResponse:
    """The reply as server-sent events; `pace` waits between chunks, `cut` closes in the middle."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    pieces = _pieces(reply["choices"][0]["message"])
    for number, delta in enumerate(pieces):
        if "cut" in chosen and number == len(pieces) // 2:
            assert request.transport is not None
            request.transport.abort()
        if "quit" in chosen and number == len(pieces) // 2:
            return response
        await response.write(_event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, chosen))
        await asyncio.sleep(float(chosen.get("pace", 0)))
    finish = reply["choices"][0]["finish_reason"]
    await response.write(_event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, chosen))
    if usage:
        await response.write(_event({"choices": [], "usage": reply.get("usage")}, chosen))
    await response.write(b"data: [DONE]\n\n")
    return response


def _pieces(message: Json) -> list[Json]:
    """The message in deltas: reasoning first, split in the middle of characters as byte tokens do."""
    pieces: list[Json] = [{"role": "assistant", "content": None}]
    for name in ("reasoning_content", "content"):
        units = (message.get(name) or "").encode("utf-16-le")
        step = 2 * PIECE
        halves = [units[at : at + step].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), step)]
        pieces += [{name: half} for half in halves]
    return pieces


def _event(chunk: Json, chosen: Mapping[str, str]) -> bytes:
    # The standard encoder, since half a surrogate pair is what some servers send.
    text = web.json_response({"id": "chatcmpl-s", "object": "chat.completion.chunk", **chunk}).body
    assert isinstance(text, bytes)
    if "bad_utf8" in chosen:
        text = text.replace(b'"content": "', b'"content": "\xff', 1)
    return b"data: " + text + b"\n\n"
