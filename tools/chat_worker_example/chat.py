"""The two translations: a job's payload into a backend's call, a backend's completion into a reply.

Pure functions. Shapes of the horde: details D5 (payload) and native API N3 (reply).
"""

import secrets
from typing import Any

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
    """The backend's answer is not a chat completion."""


def call_of(payload: Json, model: str) -> Json:
    """Builds the chat-completions body of a job: OpenAI's fields only, absent where the job has none."""
    call: Json = {"model": model, "stream": False}
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
    listed = message.get("tool_calls") or []
    if not isinstance(listed, list):
        raise UnusableCompletion("tool_calls is not a list")
    calls = [_tool_call(call) for call in listed]
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    finish = choice.get("finish_reason")
    if finish not in FINISH_REASONS or (calls and finish == "stop"):
        finish = "tool_calls" if calls else "stop"
    return {
        "message": {"content": message.get("content"), "reasoning_content": reasoning, "tool_calls": calls or None},
        "finish_reason": finish,
        "usage": usage_of(completion),
    }


def _first_choice(completion: object) -> Json:
    choices = completion.get("choices") if isinstance(completion, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UnusableCompletion("the answer holds no choices")
    return choices[0]


def _tool_call(call: object) -> Json:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise UnusableCompletion("a tool call has no function")
    return {
        "id": call.get("id") or f"call_{secrets.token_hex(12)}",
        "type": "function",
        "function": {"name": function["name"], "arguments": function.get("arguments", "")},
    }


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
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
