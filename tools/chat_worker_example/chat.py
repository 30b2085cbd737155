"""The two translations: a job's payload into a backend's call, a backend's completion into a reply.

Pure functions. Shapes of the horde: details D5 (payload) and native API N3 (reply).
"""

import json
import secrets
from typing import Any

from .text import mend

Json = dict[str, Any]

PASSED_AS_THEY_ARE = (
    "messages",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "max_tokens",
    "reasoning_effort",
)
TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")
FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter"})


class UnusableCompletion(Exception):
    """The backend's answer is not a chat completion that the horde could take."""


def call_of(payload: Json, model: str) -> Json:
    """Builds the chat-completions body of a job: OpenAI's fields only, absent where the job has none."""
    call: Json = {"model": model, "stream": bool(payload.get("stream"))}
    if call["stream"]:
        call["stream_options"] = {"include_usage": True}
    for name in PASSED_AS_THEY_ARE:
        if payload.get(name) is not None:
            call[name] = payload[name]
    if payload.get("stop"):
        call["stop"] = payload["stop"]
    if payload.get("tools"):
        call.update({name: payload[name] for name in TOOL_FIELDS if payload.get(name) is not None})
    response_format = payload.get("response_format")
    if response_format and response_format.get("type") != "text":
        call["response_format"] = response_format
    return call


def reply_of(completion: object) -> Json:
    """Builds the reply's part of a submit: message, finish_reason, usage.

    Raises UnusableCompletion when there is no choice with a message in it.
    """
    choice = _first_choice(completion)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnusableCompletion("the first choice has no message")
    calls = _tool_calls(message.get("tool_calls") or [])
    finish = choice.get("finish_reason")
    if finish not in FINISH_REASONS or (calls and finish == "stop"):
        finish = "tool_calls" if calls else "stop"
    reasoning = reasoning_of(message)
    return {
        "message": {
            "content": _content(message.get("content")),
            "reasoning_content": mend(reasoning) if reasoning else None,
            "tool_calls": calls or None,
        },
        "finish_reason": finish,
        "usage": usage_of(completion),
    }


def reasoning_of(message: Json) -> str | None:
    """The reasoning of a message or a delta: llama.cpp and vLLM have two names for it."""
    found = message.get("reasoning_content") or message.get("reasoning")
    return found if isinstance(found, str) else None


def _first_choice(completion: object) -> Json:
    choices = completion.get("choices") if isinstance(completion, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UnusableCompletion("the answer holds no choices")
    return choices[0]


def _content(content: object) -> str | None:
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise UnusableCompletion("the content is not text")
    return mend(content) if content else None


def _tool_calls(listed: object) -> list[Json]:
    """The calls, each with an id of its own: a client could not answer two that share one."""
    if not isinstance(listed, list):
        raise UnusableCompletion("tool_calls is not a list")
    calls: list[Json] = []
    for call in map(_tool_call, listed):
        if call["id"] in {earlier["id"] for earlier in calls}:
            call["id"] = _new_id()
        calls.append(call)
    return calls


def _tool_call(call: object) -> Json:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise UnusableCompletion("a tool call has no function")
    call_id = call.get("id")
    return {
        "id": call_id if isinstance(call_id, str) and call_id else _new_id(),
        "type": "function",
        "function": {"name": mend(function["name"]), "arguments": _arguments(function.get("arguments"))},
    }


def _arguments(arguments: object) -> str:
    """Arguments as JSON text: some servers answer the object itself, or nothing where there are none."""
    if isinstance(arguments, str):
        return mend(arguments) or "{}"
    if arguments is None:
        return "{}"
    return mend(json.dumps(arguments, ensure_ascii=False))


def _new_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def usage_of(completion: object) -> Json | None:
    """The token counts that the backend reported, or None."""
    usage = completion.get("usage") if isinstance(completion, dict) else None
    if not isinstance(usage, dict):
        return None
    counts: Json = {name: usage[name] for name in ("prompt_tokens", "completion_tokens") if _is_count(usage.get(name))}
    details = usage.get("completion_tokens_details")
    if isinstance(details, dict) and _is_count(details.get("reasoning_tokens")):
        counts["completion_tokens_details"] = {"reasoning_tokens": details["reasoning_tokens"]}
    return counts or None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
