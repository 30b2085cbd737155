"""Asks the backend a few small questions at the start, so that the declaration rests on what it really does.

Each answer becomes a piece of evidence in words, which `horde-worker check` prints.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from .backend import Backend, BackendError
from .chat import Json, UnusableCompletion, reply_of, usage_of
from .questions import (
    CONVERSATION,
    PICTURE,
    PROBE_SCHEMA,
    PROBE_TOOL,
    SMALL_TALK,
    is_json_object,
    is_only_instance,
    is_probe_call,
    too_long_for,
)

T = TypeVar("T")

JSON_TOKENS = 32
CALL_TOKENS = 64
TRIM_SLACK = 0.9
"""A backend that keeps less than this share of the context it is said to have does not have it."""


@dataclass(frozen=True)
class Evidence:
    """What one question showed, in words."""

    shown: bool
    words: str


@dataclass(frozen=True)
class Findings:
    """What the probe showed."""

    kind: str
    backend_model: str
    """The model name for calls to the backend."""
    enforces: frozenset[str]
    """Guarantees that this kind of backend gives with the feature."""
    measured_context: int | None
    used_tokens: int | None
    """The backend's own count of the probe conversation, usage.prompt_tokens."""
    counted_tokens: int | None
    """The counter routes' count of the same conversation."""
    counts_tools: bool
    """The counter is not short on a call with a tool either."""
    trimmed_to: int | None = None
    """Tokens that the backend kept, in silence, of a conversation longer than its context."""
    evidence: dict[str, Evidence] = field(default_factory=dict)
    """By feature or guarantee, and `overflow` for what happens beyond the context."""

    @property
    def shown(self) -> frozenset[str]:
        """Features and guarantees that the backend's replies showed."""
        return frozenset(name for name, evidence in self.evidence.items() if evidence.shown)


class ModelMissing(Exception):
    """The backend lists several models and the configured one is not among them."""


@dataclass(frozen=True)
class Prober:
    """One round of questions to one backend. A BackendError means: not ready, ask again later."""

    backend: Backend
    model_name: str
    claimed_context: int | None = None
    """The context that the operator says it has."""

    async def probe(self) -> Findings:
        """Runs the whole round. Raises BackendError, or ModelMissing."""
        listed = await _unless_refused(self.backend.models()) or []
        model = pick_model(self.model_name, [str(entry.get("id")) for entry in listed])
        plain = self._call(model, CONVERSATION, 1)
        used = prompt_tokens(await self.backend.complete(plain))
        with_tool = {**plain, "tools": [PROBE_TOOL], "tool_choice": "auto"}
        used_with_tool = await self._used(with_tool)
        # Only now: Ollama tells the context of a model that is loaded.
        measured = await _unless_refused(self.backend.context(model))
        context = min((size for size in (self.claimed_context, measured) if size), default=None)
        trimmed_to, overflow = await self._beyond(model, context)
        return Findings(
            kind=self.backend.kind,
            backend_model=model,
            enforces=self.backend.enforces,
            measured_context=measured,
            used_tokens=used,
            counted_tokens=await self._counted(plain),
            counts_tools=covers(await self._counted(with_tool), used_with_tool),
            trimmed_to=trimmed_to,
            evidence={
                "overflow": overflow,
                **await self._json(model),
                **await self._tools(model, used, used_with_tool),
                "images": await self._images(model),
                "reasoning": await self._reasoning(model),
            },
        )

    async def finds_again(self, findings: Findings) -> bool:
        """Whether the backend still serves the model and the context that were probed.

        It may have been started again with others since. Raises BackendError while it does not answer.
        """
        before = findings.measured_context
        try:
            listed = [str(entry.get("id")) for entry in await self.backend.models()]
            is_same_model = pick_model(self.model_name, listed) == findings.backend_model
            context = await self.backend.context(findings.backend_model)
        except ModelMissing:
            return False
        except BackendError as error:
            if error.status is None or error.status >= 500:
                raise
            return before is None
        # Ollama tells no context of a model that is not loaded just now.
        return is_same_model and (context is None or before is None or context == before)

    def _call(self, model: str, messages: list[Json], max_tokens: int) -> Json:
        return {"model": model, "stream": False, "messages": messages, "max_tokens": max_tokens, "temperature": 0}

    async def _counted(self, call: Json) -> int | None:
        return await _unless_refused(self.backend.count_tokens(call))

    async def _used(self, call: Json) -> int | None:
        completion = await _unless_refused(self.backend.complete(call))
        return None if completion is None else prompt_tokens(completion)

    async def _reply(self, call: Json) -> Json | None:
        try:
            return reply_of(await _unless_refused(self.backend.complete(call)))
        except UnusableCompletion:
            return None

    async def _beyond(self, model: str, context: int | None) -> tuple[int | None, Evidence]:
        """Asks for more than the context holds. A backend that refuses cannot trim; one that answers has trimmed."""
        if context is None:
            return None, Evidence(False, "the context is unknown, so nothing beyond it was tried")
        call = self._call(model, too_long_for(context), 1)
        try:
            used = prompt_tokens(await self.backend.complete(call))
        except UnusableCompletion:
            used = None
        except BackendError as error:
            if error.status is None or error.status == 503:
                raise
            return None, Evidence(error.overflow, f"a prompt longer than {context} tokens was answered {error.status}")
        if used is None or used > context:
            return None, Evidence(False, f"a prompt longer than {context} tokens was taken, as {used} tokens")
        return used, Evidence(False, f"a prompt longer than {context} tokens was trimmed to {used} in silence")

    async def _json(self, model: str) -> dict[str, Evidence]:
        call = self._call(model, SMALL_TALK, JSON_TOKENS)
        reply = await self._reply({**call, "response_format": {"type": "json_object"}})
        is_object = reply is not None and is_json_object(reply)
        schema = {"name": "probe", "strict": True, "schema": PROBE_SCHEMA}
        reply = await self._reply({**call, "response_format": {"type": "json_schema", "json_schema": schema}})
        is_instance = reply is not None and is_only_instance(reply)
        return {
            "json_object": _seen(is_object, "small talk came back as a JSON object", "as something else"),
            "json_schema": _seen(
                is_instance, "small talk came back as the one value that a schema allowed", "as something else"
            ),
        }

    async def _tools(self, model: str, used: int | None, used_with_tool: int | None) -> dict[str, Evidence]:
        if used is None or used_with_tool is None or used_with_tool <= used:
            unseen = Evidence(False, f"a tool made the prompt no longer ({used} and {used_with_tool} tokens)")
            return dict.fromkeys(("tools", "tool_choice_enforced", "tool_choice_auto_faithful"), unseen)
        call = {**self._call(model, SMALL_TALK, CALL_TOKENS), "tools": [PROBE_TOOL]}
        forced = await self._reply({**call, "tool_choice": "required"})
        is_call = forced is not None and is_probe_call(forced)
        free = await self._reply({**call, "tool_choice": "auto"}) if is_call else None
        is_faithful = free is not None and not free["message"]["tool_calls"]
        longer = f"a tool made the prompt {used_with_tool - used} tokens longer"
        return {
            "tools": _seen(is_call, f"{longer}, and a forced call came with fitting arguments", "but no call came"),
            "tool_choice_enforced": _seen(is_call, "small talk brought the call that was forced", "none came"),
            "tool_choice_auto_faithful": _seen(
                is_faithful, "left to choose, small talk brought no call", "one came, or the choice was refused"
            ),
        }

    async def _images(self, model: str) -> Evidence:
        """A picture has to make the prompt longer; a backend without a projector refuses it or leaves it out."""
        text = {"type": "text", "text": "Which colour?"}
        picture = {"type": "image_url", "image_url": {"url": PICTURE}}
        without = await self._used(self._call(model, [{"role": "user", "content": [text]}], 1))
        used = await self._used(self._call(model, [{"role": "user", "content": [text, picture]}], 1))
        grown = used is not None and without is not None and used > without
        refused = "it was refused" if used is None else f"it did not: {without} and {used} tokens"
        return _seen(grown, "a small picture made the prompt longer", refused)

    async def _reasoning(self, model: str) -> Evidence:
        """Reasoning has to come apart from the content, and the effort has to change something."""
        call = self._call(model, SMALL_TALK, CALL_TOKENS)
        hoped = "reasoning came apart from the content, and its effort changed the reply"
        high = await self._reply({**call, "reasoning_effort": "high"})
        if high is None or not high["message"]["reasoning_content"]:
            return _seen(False, hoped, "none came")
        low = await self._reply({**call, "reasoning_effort": "low"})
        return _seen(low != high, hoped, "the effort changed nothing")


def _seen(shown: bool, hoped: str, otherwise: str) -> Evidence:
    return Evidence(shown, hoped if shown else f"hoped for: {hoped}; {otherwise}")


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


def prompt_tokens(completion: Json) -> int | None:
    """The prompt's size as the backend reports it."""
    count = (usage_of(completion) or {}).get("prompt_tokens")
    return count if isinstance(count, int) and count > 0 else None
