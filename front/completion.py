"""From the native status to OpenAI's shapes (front F3, F4; contract reference 4.1-4.4). Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from front import sse
from front.standing import Standing
from front.wire import encode

CHARS_PER_COMPLETION_TOKEN = 4
FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """What the client asked for, as far as the answer's shape depends on it."""

    created: int
    model: str
    conformance: str
    prompt_tokens: int
    include_reasoning: bool
    include_usage: bool
    opens_with_role: bool
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """One generation, read for an answer."""

    content: str
    reasoning: str
    tool_calls: list[dict[str, Any]]
    finish_reason: str
    model: str
    usage: dict[str, Any]
    x_horde: dict[str, Any]

    @classmethod
    def read(cls, standing: Standing, request_id: str, form: AnswerForm) -> "Reply":
        """Read the delivered generation of a standing that has a reply."""
        generation = standing.generation or {}
        message = generation.get("message") or {}
        content, reasoning = _text(message.get("content")), _text(message.get("reasoning_content"))
        calls = [_tool_call(call) for call in message.get("tool_calls") or []]
        characters = len(content) + len(reasoning)
        characters += sum(len(call["function"]["name"]) + len(call["function"]["arguments"]) for call in calls)
        usage, estimated = _usage(generation.get("usage"), form.prompt_tokens, characters)
        return cls(
            content=content,
            reasoning=reasoning if form.include_reasoning else "",
            tool_calls=calls,
            finish_reason=_finish_reason(generation.get("finish_reason"), has_calls=bool(calls)),
            model=str(generation.get("model") or form.model),
            usage=usage,
            x_horde={
                "request_id": request_id,
                "kudos": standing.kudos,
                "charge_basis": standing.charge_basis,
                "estimated_usage": estimated,
                "worker": {"id": generation.get("worker_id"), "name": generation.get("worker_name")},
                "queue_seconds": generation.get("queue_seconds"),
                "conformance": form.conformance,
            },
        )


def completion(reply: Reply, request_id: str, form: AnswerForm) -> bytes:
    """The body of a plain answer."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.content or None,
        "refusal": None,
        "annotations": [],
    }
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = reply.tool_calls
    return encode(
        {
            "id": completion_id(request_id),
            "object": "chat.completion",
            "created": form.created,
            "model": reply.model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}],
            "usage": reply.usage,
            "system_fingerprint": None,
            "x_horde": reply.x_horde,
        }
    )


def completion_id(request_id: str) -> str:
    """The completion's id, from which the request's can be read."""
    return f"chatcmpl-{request_id}"


class Chunks:
    """The events of one stream, all with the same head."""

    def __init__(self, request_id: str, form: AnswerForm) -> None:
        self._request_id = request_id
        self._form = form
        self._model = form.model
        self._is_open = False

    def opening(self, model: str | None = None) -> bytes:
        """The role chunk, once; from here on chunks name `model`, if it is given."""
        self._model = model or self._model
        if self._is_open:
            return b""
        self._is_open = True
        return self._delta({"role": "assistant", "content": ""})

    def text(self, key: str, text: str) -> bytes:
        """More of the content or the reasoning, whose name in a delta is `key`."""
        return self._delta({key: text})

    def whole(self, reply: Reply) -> bytes:
        """Everything after the opening, for a reply that is there as a whole."""
        self._model = reply.model
        events = []
        if not self._form.opens_with_role:
            events.append(self._delta({"role": "assistant", "content": "" if reply.content else None}))
        if reply.reasoning:
            events.append(self.text("reasoning_content", reply.reasoning))
        if reply.content:
            events.append(self.text("content", reply.content))
        return b"".join((*events, self.closing(reply)))

    def closing(self, reply: Reply) -> bytes:
        """Everything after the text of a reply."""
        self._model = reply.model
        return b"".join(self._last_events(reply))

    def _last_events(self, reply: Reply) -> Iterator[bytes]:
        if reply.tool_calls:
            yield self._delta({"tool_calls": [{"index": at, **call} for at, call in enumerate(reply.tool_calls)]})
        usage_follows = self._form.include_usage
        yield self._chunk([_choice({}, reply.finish_reason)], None if usage_follows else reply)
        if usage_follows:
            yield self._chunk([], reply)
        yield sse.DONE

    def _delta(self, delta: Mapping[str, Any]) -> bytes:
        return self._chunk([_choice(delta, None)], None)

    def _chunk(self, choices: list[dict[str, Any]], last_of: Reply | None) -> bytes:
        """One event; the last one of a reply carries `x_horde`, and the usage where it was asked for."""
        chunk: dict[str, Any] = {
            "id": completion_id(self._request_id),
            "object": "chat.completion.chunk",
            "created": self._form.created,
            "model": self._model,
            "system_fingerprint": None,
            "choices": choices,
        }
        if self._form.include_usage:
            chunk["usage"] = last_of.usage if last_of is not None else None
        if last_of is not None:
            chunk["x_horde"] = last_of.x_horde
        return sse.event(chunk)


def _choice(delta: Mapping[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": function["arguments"] or "{}"},
    }


def _finish_reason(reported: object, *, has_calls: bool) -> str:
    """One of OpenAI's words, the same in both modes: `length` outweighs calls, calls outweigh `stop`."""
    reason = reported if isinstance(reported, str) and reported in FINISH_REASONS else "stop"
    return "tool_calls" if has_calls and reason == "stop" else reason


def _usage(reported: object, prompt_tokens: int, characters: int) -> tuple[dict[str, Any], list[str]]:
    """The usage, and which of its keys are estimates (contract C7)."""
    given = reported if isinstance(reported, dict) else {}
    estimated: list[str] = []

    def count(name: str, estimate: int) -> int:
        value = given.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        estimated.append(name)
        return estimate

    prompt = count("prompt_tokens", prompt_tokens)
    completion_tokens = count("completion_tokens", -(-characters // CHARS_PER_COMPLETION_TOKEN))
    if estimated:
        estimated.append("total_tokens")
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt + completion_tokens,
    }
    for name in ("prompt_tokens_details", "completion_tokens_details"):
        if isinstance(given.get(name), dict):
            usage[name] = given[name]
    return usage, estimated
