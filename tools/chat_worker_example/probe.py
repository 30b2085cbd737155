"""Asks the backend a few small questions at the start, so that the declaration rests on what it really does."""

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from .backend import Backend, BackendError
from .chat import Json, UnusableCompletion, reply_of, usage_of

T = TypeVar("T")

CONVERSATION: list[Json] = [
    {"role": "user", "content": "Name a fruit.\n\n  One word, s'il vous plaît 🍐"},
    {"role": "assistant", "content": "Pear 🍐"},
    {"role": "user", "content": "Another one?"},
]
"""The conversation that counters are checked on.

It has no system message, because some templates put in one of their own only then,
and that belongs to the template's fixed part. Line breaks, spaces and characters of
several bytes are what tokenizers treat differently.
"""

SMALL_TALK: list[Json] = [{"role": "user", "content": "Answer with one word: hello"}]
"""A conversation that calls for neither JSON nor a tool: what comes all the same was forced."""

PROBE_TOOL: Json = {
    "type": "function",
    "function": {
        "name": "record_harvest",
        "description": "Records how many crates of fruit were picked.",
        "parameters": {
            "type": "object",
            "properties": {"crates": {"type": "integer"}},
            "required": ["crates"],
            "additionalProperties": False,
        },
    },
}
ONLY_VALUE = "k7f3q"
PROBE_SCHEMA: Json = {
    "type": "object",
    "properties": {"token": {"type": "string", "enum": [ONLY_VALUE]}},
    "required": ["token"],
    "additionalProperties": False,
}
ONLY_INSTANCE = f'{{"token":"{ONLY_VALUE}"}}'
"""What the schema allows, spaces apart: nothing else, and nothing that small talk would bring about."""

JSON_TOKENS = 32
CALL_TOKENS = 64


@dataclass(frozen=True)
class Findings:
    """What the probe showed."""

    backend_model: str
    """The model name for calls to the backend."""
    llama_cpp: bool
    measured_context: int | None
    used_tokens: int | None
    """The backend's own count of the probe conversation, usage.prompt_tokens."""
    counted_tokens: int | None
    """The counter routes' count of the same conversation."""
    counts_tools: bool
    """The counter is not short on a call with a tool either."""
    shown: frozenset[str]
    """Features and guarantees that the backend's replies showed."""


class ModelMissing(Exception):
    """The backend lists several models and the configured one is not among them."""


@dataclass(frozen=True)
class Prober:
    """One round of questions to one backend. A BackendError means: not ready, ask again later."""

    backend: Backend
    model_name: str

    async def probe(self) -> Findings:
        """Runs the whole round. Raises BackendError, or ModelMissing."""
        listed = await self._listed_models()
        model = pick_model(self.model_name, [str(entry.get("id")) for entry in listed])
        plain = self._call(model, CONVERSATION, 1)
        used = prompt_tokens(await self.backend.complete(plain))
        with_tool = {**self._call(model, CONVERSATION, 1), "tools": [PROBE_TOOL], "tool_choice": "auto"}
        used_with_tool = await self._used(with_tool)
        counted_with_tool = await self._counted(with_tool)
        shown = await self._json_shown(model)
        if used is not None and used_with_tool is not None and used_with_tool > used:
            shown |= await self._tools_shown(model)
        return Findings(
            backend_model=model,
            llama_cpp=any(entry.get("owned_by") == "llamacpp" for entry in listed),
            measured_context=context_of(await self._props(), listed, model),
            used_tokens=used,
            counted_tokens=await self._counted(plain),
            counts_tools=covers(counted_with_tool, used_with_tool),
            shown=frozenset(shown),
        )

    def _call(self, model: str, messages: list[Json], max_tokens: int) -> Json:
        return {"model": model, "stream": False, "messages": messages, "max_tokens": max_tokens, "temperature": 0}

    async def _listed_models(self) -> list[Json]:
        return await _unless_refused(self.backend.models()) or []

    async def _props(self) -> Json:
        return await _unless_refused(self.backend.props()) or {}

    async def _counted(self, call: Json) -> int | None:
        return await _unless_refused(self.backend.count_tokens(call))

    async def _used(self, call: Json) -> int | None:
        completion = await _unless_refused(self.backend.complete(call))
        return None if completion is None else prompt_tokens(completion)

    async def _reply(self, call: Json) -> Json | None:
        completion = await _unless_refused(self.backend.complete(call))
        try:
            return reply_of(completion)
        except UnusableCompletion:
            return None

    async def _json_shown(self, model: str) -> set[str]:
        call = self._call(model, SMALL_TALK, JSON_TOKENS)
        schema = {"name": "probe", "strict": True, "schema": PROBE_SCHEMA}
        shown = set()
        reply = await self._reply({**call, "response_format": {"type": "json_object"}})
        if reply is not None and is_json_object(reply):
            shown.add("json_object")
        reply = await self._reply({**call, "response_format": {"type": "json_schema", "json_schema": schema}})
        if reply is not None and is_only_instance(reply):
            shown.add("json_schema")
        return shown

    async def _tools_shown(self, model: str) -> set[str]:
        call = {**self._call(model, SMALL_TALK, CALL_TOKENS), "tools": [PROBE_TOOL]}
        forced = await self._reply({**call, "tool_choice": "required"})
        if forced is None or not is_probe_call(forced):
            return set()
        free = await self._reply({**call, "tool_choice": "auto"})
        faithful = free is not None and not free["message"]["tool_calls"]
        return {"tools", "tool_choice_enforced"} | ({"tool_choice_auto_faithful"} if faithful else set())


async def _unless_refused(asked: Awaitable[T]) -> T | None:
    """The backend's answer, or None when it answered that it cannot do this.

    A backend that does not answer at all, or is still loading, has shown nothing: that BackendError goes on.
    """
    try:
        return await asked
    except BackendError as error:
        if error.status is None or error.status == 503:
            raise
        return None


def covers(counted: int | None, used: int | None) -> bool:
    """Whether a counter is not short of what generation used; False when either is unknown."""
    return counted is not None and used is not None and counted >= used


def pick_model(name: str, listed: list[str]) -> str:
    """The name to call the backend with: the configured one, or the only one that it lists.

    Raises ModelMissing when the choice is not clear.
    """
    if not listed or name in listed:
        return name
    if len(listed) == 1:
        return listed[0]
    raise ModelMissing(f"MODEL_NAME {name!r} is not served by the backend; it lists {', '.join(sorted(listed))}")


def context_of(props: Json, listed: list[Json], model: str) -> int | None:
    """The context of one conversation in tokens: llama.cpp's share of a slot, or vLLM's max_model_len."""
    settings = props.get("default_generation_settings")
    sizes = [settings.get("n_ctx") if isinstance(settings, dict) else None]
    sizes += [entry.get("max_model_len") for entry in listed if entry.get("id") == model]
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)


def prompt_tokens(completion: Json) -> int | None:
    """The prompt's size as the backend reports it."""
    count = (usage_of(completion) or {}).get("prompt_tokens")
    return count if isinstance(count, int) and count > 0 else None


def object_in(content: object) -> Json | None:
    """The JSON object that a content is, or None."""
    try:
        value = json.loads(content) if isinstance(content, str) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_json_object(reply: Json) -> bool:
    """Whether the reply is a JSON object, or was one as far as the token limit let it come.

    A small model may not find an end; what is complete of the object then has to parse.
    """
    content = reply["message"]["content"]
    if object_in(content) is not None:
        return True
    if reply["finish_reason"] != "length" or not isinstance(content, str):
        return False
    cuts = [position for position, character in enumerate(content) if character == ","] + [len(content)]
    return any(object_in(content[:cut] + "}") is not None for cut in reversed(cuts))


def is_only_instance(reply: Json) -> bool:
    """Whether the reply is the one instance of PROBE_SCHEMA, or its beginning where the token limit cut it."""
    compact = "".join(str(reply["message"]["content"] or "").split())
    cut = reply["finish_reason"] == "length" and compact != "" and ONLY_INSTANCE.startswith(compact)
    return cut or compact == ONLY_INSTANCE


def is_probe_call(reply: Json) -> bool:
    """Whether the reply calls the probe's tool with arguments of the right shape."""
    calls = reply["message"]["tool_calls"] or []
    functions = [call["function"] for call in calls]
    return bool(functions) and all(
        function["name"] == PROBE_TOOL["function"]["name"]
        and isinstance((object_in(function["arguments"]) or {}).get("crates"), int)
        for function in functions
    )
