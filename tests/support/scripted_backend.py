"""A scripted OpenAI-compatible backend: the edge of the world that is not ours.

It answers at once and always the same way, so flows and benches measure the horde
and not a model. What it does beside echoing is chosen by markers in the last user
message (`[[delay=0.2]]`, `[[status=500]]`, several at once) or ahead of time
through `POST /control`. With its counter routes it looks like a llama.cpp server;
`BackendShape` takes parts of that away.

    python -m tests.support.scripted_backend --port 8080

| marker | what the next reply does |
| --- | --- |
| `delay=SECONDS` | waits first |
| `hang` | never answers |
| `drop` | closes the connection without an answer |
| `status=CODE` | an error of that status |
| `malformed` | a 200 whose body is not JSON |
| `say=TEXT` | this text instead of the echo |
| `reasoning=TEXT` | reasoning before the content |
| `length` | cut off: finish reason `length`, the whole of max_tokens used |
| `tool_call`, `tool_call=NAME` | a call to the first (or this) tool of the request, until a tool has answered |
| `unknown_function` | a call to a function that the request does not offer |
| `not_json` | prose, whatever the response format asks |
| `pace=SECONDS`, `cut`, `quit` | a stream that waits between chunks; is torn in the middle; ends there |
| `flood`, `twin_ids`, `object_arguments`, `wrong_usage`, `bad_utf8`, `loris` | spoilt: `misbehaviour.py` |
"""

import argparse
import asyncio
import re
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.support.misbehaviour import body_of, spoil, stream, trickle

Json = dict[str, Any]

MARKER = re.compile(r"\[\[(\w+)(?:=([^\]]*))?\]\]")
TOKEN = re.compile(r"\w{1,4}|[^\w\s]|\s+")
REMEMBERED = 200
PICTURE_TOKENS = 16
MARKERS = frozenset(
    {
        "delay",
        "hang",
        "drop",
        "status",
        "malformed",
        "say",
        "reasoning",
        "length",
        "tool_call",
        "unknown_function",
        "not_json",
        "pace",
        "cut",
        "quit",
        "flood",
        "twin_ids",
        "object_arguments",
        "wrong_usage",
        "bad_utf8",
        "loris",
    }
)


@dataclass(frozen=True)
class BackendShape:
    """What kind of server this is."""

    model: str = "scripted-model"
    context: int = 8192
    llama_cpp: bool = True
    reports_usage: bool = True
    renders_tools: bool = True
    usage_skew: int = 0
    """Tokens that generation uses beyond what the counter routes admit: a counter that is short."""
    trims_to: int | None = None
    """Tokens that it keeps, in silence, of a prompt longer than its context; None to refuse such a prompt."""
    vision: bool = False
    """A picture adds tokens to the prompt; without it, pictures are left out."""
    reasons: bool = False
    """Whatever asks for high effort is reasoned about."""


@dataclass
class Planned:
    """Behaviours set through the control route; `times` None means until they are cleared."""

    behaviours: dict[str, str] = field(default_factory=dict)
    times: int | None = 0


@dataclass
class ScriptedBackend:
    """State of one running backend: its shape, what is planned, and what it has seen."""

    shape: BackendShape = field(default_factory=BackendShape)
    planned: Planned = field(default_factory=Planned)
    completions: int = 0
    open_calls: int = 0
    requests: deque[Json] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    url: str = ""

    def plan(self, behaviours: Mapping[str, str], times: int | None = 1) -> None:
        """Sets behaviours for the next `times` completions, or for all when `times` is None."""
        unknown = sorted(set(behaviours) - MARKERS)
        if unknown:
            raise ValueError(f"unknown behaviours {unknown}; known are {sorted(MARKERS)}")
        self.planned = Planned(dict(behaviours), times)

    def take_behaviours(self, text: str) -> dict[str, str]:
        """Behaviours of one completion: the planned ones, then the markers of its last user message."""
        chosen: dict[str, str] = {}
        if self.planned.times is None or self.planned.times > 0:
            chosen.update(self.planned.behaviours)
            if self.planned.times is not None:
                self.planned.times -= 1
        chosen.update(MARKER.findall(text))
        return chosen

    def prompt_tokens(self, body: Json) -> int:
        """Tokens that generation uses for this call, the BOS token included."""
        used = 1 + count_tokens(self.render(body)) + self.shape.usage_skew
        if self.shape.vision:
            used += PICTURE_TOKENS * sum(part.get("type") == "image_url" for part in parts_of(body))
        kept = self.shape.trims_to
        return kept if kept is not None and used > self.shape.context else used

    def render(self, body: Json) -> str:
        """The conversation in this backend's chat template."""
        lines = [f"<|{message['role']}|>\n{text_of(message)}<|end|>\n" for message in body["messages"]]
        if body.get("tools") and self.shape.renders_tools:
            lines.insert(0, f"<|tools|>\n{orjson.dumps(body['tools']).decode()}<|end|>\n")
        return "".join(lines) + "<|assistant|>\n"


def count_tokens(text: str) -> int:
    """Number of tokens of a text, without BOS."""
    return len(TOKEN.findall(text))


def text_of(message: Json) -> str:
    """Text of a message; parts that are not text are left out."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def until_stop(text: str, stops: list[str] | str) -> str:
    """The text up to the first stop sequence in it."""
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.partition(stop)[0]
    return text


def parts_of(body: Json) -> list[Json]:
    """The parts of all messages that have parts."""
    lists = [message["content"] for message in body["messages"] if isinstance(message.get("content"), list)]
    return [part for parts in lists for part in parts]


def instance_of(schema: Json) -> Any:
    """Returns the smallest value that a plain schema accepts."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return instance_of(schema["anyOf"][0])
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: instance_of(properties.get(name, {"type": "null"})) for name in schema.get("required", [])}
    if kind == "array":
        return [instance_of(schema.get("items", {}))] * schema.get("minItems", 0)
    return {"string": "", "integer": 0, "number": 0, "boolean": False, "null": None}[kind]


def _tool_call(body: Json, asked: str | None) -> Json:
    tools = {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or []}
    name = asked or next(iter(tools))
    arguments = instance_of(tools.get(name, {}).get("parameters", {}))
    function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
    return {"id": f"call_{name}", "type": "function", "function": function}


def _content(body: Json, chosen: Mapping[str, str], echo: str) -> str:
    if "not_json" in chosen:
        return "This is not JSON."
    if "say" in chosen:
        return chosen["say"]
    response_format = body.get("response_format") or {}
    if response_format.get("type") == "json_object":
        return orjson.dumps({"echo": echo}).decode()
    if response_format.get("type") == "json_schema":
        return orjson.dumps(instance_of(response_format["json_schema"].get("schema", {}))).decode()
    return echo


def _wants_call(body: Json, chosen: Mapping[str, str], renders_tools: bool) -> str | None:
    """Name of the function to call, empty for the first tool, None for no call."""
    if "unknown_function" in chosen:
        return "no_such_function"
    answered = body["messages"][-1]["role"] == "tool"
    if "tool_call" in chosen and body.get("tools") and not answered:
        return chosen["tool_call"]
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        return str(choice["function"]["name"])
    return "" if choice == "required" and renders_tools else None


def completion_of(backend: ScriptedBackend, body: Json, chosen: Mapping[str, str], echo: str) -> Json:
    """Builds the reply to one chat-completions call."""
    message: Json = {"role": "assistant", "content": None}
    call = _wants_call(body, chosen, backend.shape.renders_tools)
    if call is None:
        message["content"] = until_stop(_content(body, chosen, echo), body.get("stop") or [])
    else:
        message["tool_calls"] = [_tool_call(body, call or None)]
    if "reasoning" in chosen:
        message["reasoning_content"] = chosen["reasoning"]
    elif backend.shape.reasons and body.get("reasoning_effort") == "high":
        message["reasoning_content"] = "Let me think."
    finish = "stop" if call is None else "tool_calls"
    written = min(count_tokens(orjson.dumps(message).decode()), body.get("max_tokens") or 2**31)
    if "length" in chosen:
        finish, written = "length", body.get("max_tokens") or written
    reply: Json = {
        "id": f"chatcmpl-{backend.completions}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body.get("model") or backend.shape.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if backend.shape.reports_usage:
        asked = backend.prompt_tokens(body)
        reply["usage"] = {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written}
    return reply


BACKEND = web.AppKey("backend", ScriptedBackend)


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _error(status: int, kind: str) -> web.Response:
    return _json({"error": {"message": f"scripted {kind}", "type": kind, "param": None, "code": status}}, status)


async def _completions(request: web.Request) -> web.StreamResponse:
    backend = request.app[BACKEND]
    body = orjson.loads(await request.read())
    backend.completions += 1
    backend.requests.append(body)
    users = [message for message in body["messages"] if message["role"] == "user"]
    text = text_of(users[-1]) if users else ""
    chosen = backend.take_behaviours(text)
    backend.open_calls += 1
    try:
        return await _answer(request, body, chosen, MARKER.sub("", text))
    finally:
        backend.open_calls -= 1


async def _answer(request: web.Request, body: Json, chosen: Mapping[str, str], echo: str) -> web.StreamResponse:
    backend = request.app[BACKEND]
    if "delay" in chosen:
        await asyncio.sleep(float(chosen["delay"]))
    if "hang" in chosen:
        await asyncio.Event().wait()
    if "drop" in chosen and request.transport is not None:
        request.transport.abort()
    if "status" in chosen:
        return _error(int(chosen["status"]), "scripted_error")
    if "malformed" in chosen:
        return web.Response(body=b'{"choices": [', content_type="application/json")
    if "loris" in chosen:
        return await trickle(request)
    if backend.prompt_tokens(body) > backend.shape.context:
        return _error(400, "exceed_context_size_error")
    reply = spoil(completion_of(backend, body, chosen, echo), chosen, body.get("max_tokens") or 1)
    if body.get("stream"):
        return await stream(request, reply, chosen, bool((body.get("stream_options") or {}).get("include_usage")))
    return web.Response(body=body_of(reply, chosen), content_type="application/json")


async def _models(request: web.Request) -> web.Response:
    shape = request.app[BACKEND].shape
    model: Json = {"id": shape.model, "object": "model", "owned_by": "llamacpp" if shape.llama_cpp else "scripted"}
    return _json({"object": "list", "data": [model]})


async def _props(request: web.Request) -> web.Response:
    shape = request.app[BACKEND].shape
    return _json({"default_generation_settings": {"n_ctx": shape.context}, "total_slots": 8})


async def _apply_template(request: web.Request) -> web.Response:
    return _json({"prompt": request.app[BACKEND].render(orjson.loads(await request.read()))})


async def _tokenize(request: web.Request) -> web.Response:
    body = orjson.loads(await request.read())
    count = count_tokens(body["content"]) + int(bool(body.get("add_special")))
    return _json({"tokens": list(range(count))})


async def _plan(request: web.Request) -> web.Response:
    body = orjson.loads(await request.read())
    try:
        request.app[BACKEND].plan(body["behaviours"], body.get("times", 1))
    except ValueError as error:
        return _json({"error": str(error)}, 400)
    return _json({"planned": body["behaviours"]})


async def _seen(request: web.Request) -> web.Response:
    backend = request.app[BACKEND]
    seen = {"completions": backend.completions, "open": backend.open_calls, "requests": list(backend.requests)}
    return _json(seen)


async def _clear(request: web.Request) -> web.Response:
    backend = request.app[BACKEND]
    backend.planned = Planned()
    backend.completions = 0
    backend.requests.clear()
    return _json({})


async def _health(_request: web.Request) -> web.Response:
    return _json({"status": "ok"})


def build_app(backend: ScriptedBackend) -> web.Application:
    """Returns the aiohttp application of one backend."""
    app = web.Application(client_max_size=64 * 2**20)
    app[BACKEND] = backend
    app.router.add_post("/v1/chat/completions", _completions)
    app.router.add_get("/v1/models", _models)
    app.router.add_get("/health", _health)
    app.router.add_post("/control", _plan)
    app.router.add_get("/control", _seen)
    app.router.add_delete("/control", _clear)
    if backend.shape.llama_cpp:
        app.router.add_get("/props", _props)
        app.router.add_post("/apply-template", _apply_template)
        app.router.add_post("/tokenize", _tokenize)
    return app


@asynccontextmanager
async def running_backend(shape: BackendShape | None = None, port: int = 0) -> AsyncIterator[ScriptedBackend]:
    """Serves a backend in this event loop, on a free port unless one is given; its `url` says where."""
    backend = ScriptedBackend(shape or BackendShape())
    listener = socket.create_server(("127.0.0.1", port))
    backend.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    runner = web.AppRunner(build_app(backend), access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        yield backend
    finally:
        await runner.cleanup()


def main() -> None:
    """Serves one backend until SIGTERM or SIGINT; prints its address once it listens."""
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible backend for flows and benches.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--model", default=BackendShape.model)
    parser.add_argument("--context", type=int, default=BackendShape.context)
    parser.add_argument("--usage-skew", type=int, default=0, help="tokens that the counter routes do not admit")
    parser.add_argument("--no-counter", action="store_true", help="no /props, /apply-template and /tokenize")
    parser.add_argument("--no-usage", action="store_true", help="replies without usage")
    parser.add_argument("--no-tools", action="store_true", help="a template that leaves tools out")
    arguments = parser.parse_args()
    shape = BackendShape(
        model=arguments.model,
        context=arguments.context,
        llama_cpp=not arguments.no_counter,
        reports_usage=not arguments.no_usage,
        renders_tools=not arguments.no_tools,
        usage_skew=arguments.usage_skew,
    )
    listener = socket.create_server((arguments.host, arguments.port), backlog=1024)
    sys.stdout.write(f"http://{arguments.host}:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    web.run_app(
        build_app(ScriptedBackend(shape)),
        sock=listener,
        access_log=None,
        print=None,
        handler_cancellation=True,
        shutdown_timeout=0.5,
    )


if __name__ == "__main__":
    main()
