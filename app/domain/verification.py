"""Whether a worker's reply keeps the request's contract (contract C6, details D8).

Only what the reply itself shows is judged. Refusals name what failed, for the worker's
operator; nothing of the reply's text is echoed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import orjson

from app.domain.contract import ChatRequest
from app.domain.contract.fields import INT32_MAX, JsonObject
from app.domain.contract.response_format import strict_schema
from app.domain.contract.tools import function_name, named_function
from app.domain.errors import ChatReplyRefused
from app.domain.json_boundary import clean_text
from app.domain.pricing import output_tokens
from app.domain.schema_judge import UnusableSchema, mismatch

FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter")
"""What a worker may give as the end of its reply."""

SPENT_SHARE = 0.9
"""Share of `max_length` from which a reply cut by its length may be incomplete (details D8)."""

_LONGEST_ECHO = 200
_CONTENT = "message.content"
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply; `content` is None only when empty, `usage` holds the counts that the worker reported."""

    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[JsonObject]
    finish_reason: str
    usage: JsonObject | None = None

    @property
    def characters(self) -> int:
        """Characters that are priced: content, reasoning, each call's name and arguments (native API N5)."""
        calls = sum(len(function_name(call)) + len(_arguments(call)) for call in self.tool_calls)
        return len(self.content or "") + len(self.reasoning_content or "") + calls

    def stored(self) -> JsonObject:
        """The reply as JSON."""
        return {
            "content": self.content,
            "reasoning_content": self.reasoning_content,
            "tool_calls": self.tool_calls,
            "finish_reason": self.finish_reason,
            "usage": self.usage,
        }

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """A reply from its JSON."""
        return cls(**data)


def parse_reply(body: Mapping[str, object]) -> Reply:
    """The reply in a worker's submit, with text that no client could take replaced by U+FFFD.

    Raises ChatReplyRefused for a malformed reply. Counts that are none are left out.
    """
    message = body.get("message")
    if not isinstance(message, Mapping):
        raise ChatReplyRefused("'message' must be an object with the reply's content.", param="message")
    finish_reason = body.get("finish_reason")
    if finish_reason not in FINISH_REASONS:
        raise ChatReplyRefused(f"'finish_reason' must be one of {', '.join(FINISH_REASONS)}.", param="finish_reason")
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise ChatReplyRefused("'message.tool_calls' must be a list.", param="message.tool_calls")
    return Reply(
        content=_parse_text(message, "content"),
        reasoning_content=_parse_text(message, "reasoning_content"),
        tool_calls=[_parse_call(call, f"message.tool_calls[{index}]") for index, call in enumerate(calls or [])],
        finish_reason=str(finish_reason),
        usage=_parse_usage(body.get("usage")),
    )


def verify(request: ChatRequest, reply: Reply, *, max_length: int) -> Reply:
    """The reply to keep: with one call where the client wants one, and a finish reason that fits.

    Raises ChatReplyRefused naming what failed.
    """
    strict = request.horde.strict
    if strict and request.parallel_tool_calls is False:
        reply = replace(reply, tool_calls=reply.tool_calls[:1])
    cut_off = _spent(reply, max_length)
    _check_calls(request, reply, cut_off=cut_off)
    if strict:
        _check_tool_choice(request, reply, cut_off=cut_off)
        if not reply.tool_calls:
            _check_content(request, reply, cut_off=cut_off)
    return replace(reply, finish_reason=_finish_reason(reply))


def _spent(reply: Reply, max_length: int) -> bool:
    """Whether the reply ended because its budget did: then what is incomplete is accepted (details D8)."""
    if reply.finish_reason != "length":
        return False
    reported = (reply.usage or {}).get("completion_tokens")
    tokens = max(output_tokens(reply.characters, max_length), reported if isinstance(reported, int) else 0)
    return tokens >= SPENT_SHARE * max_length


def _finish_reason(reply: Reply) -> str:
    """`length` wins; else calls decide, so that both modes of the front say the same."""
    if reply.finish_reason in {"length", "content_filter"}:
        return reply.finish_reason
    return "tool_calls" if reply.tool_calls else "stop"


def _check_calls(request: ChatRequest, reply: Reply, *, cut_off: bool) -> None:
    names = {function_name(tool) for tool in request.tools or ()}
    seen: set[object] = set()
    for index, call in enumerate(reply.tool_calls):
        path = f"message.tool_calls[{index}]"
        if function_name(call) not in names:
            raise ChatReplyRefused(
                f"The reply calls a function that is not among the client's tools ({path}).", param=path
            )
        if call["id"] in seen:
            raise ChatReplyRefused(f"Two tool calls share an id ({path}.id).", param=f"{path}.id")
        seen.add(call["id"])
        _check_arguments(_arguments(call), f"{path}.function.arguments", cut_off=cut_off)


def _check_arguments(arguments: str, path: str, *, cut_off: bool) -> None:
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        if cut_off:
            return
        raise ChatReplyRefused(f"The arguments of a tool call are not JSON ({path}).", param=path) from None
    if not isinstance(value, dict):
        raise ChatReplyRefused(f"The arguments of a tool call are not a JSON object ({path}).", param=path)


def _check_tool_choice(request: ChatRequest, reply: Reply, *, cut_off: bool) -> None:
    choice = request.tool_choice
    if choice == "none" and reply.tool_calls:
        raise ChatReplyRefused("The reply calls a tool although tool_choice is none.", param="message.tool_calls")
    forced = named_function(choice)
    if choice != "required" and forced is None:
        return
    if not reply.tool_calls and not cut_off:
        raise ChatReplyRefused("The reply calls no tool although tool_choice forces one.", param="message.tool_calls")
    if forced is not None and any(function_name(call) != forced for call in reply.tool_calls):
        raise ChatReplyRefused(
            f"The reply calls another function than '{forced}', which tool_choice forces.", param="message.tool_calls"
        )


def _check_content(request: ChatRequest, reply: Reply, *, cut_off: bool) -> None:
    if request.response_format is None:
        return
    try:
        value = orjson.loads(reply.content or "")
    except orjson.JSONDecodeError:
        if cut_off:
            return
        raise ChatReplyRefused("The content is not JSON, which response_format asks for.", param=_CONTENT) from None
    if request.response_format["type"] == "json_object" and not isinstance(value, dict):
        raise ChatReplyRefused("The content is not a JSON object, which response_format asks for.", param=_CONTENT)
    schema = strict_schema(request.response_format)
    if schema is not None:
        _check_schema(schema, value)


def _check_schema(schema: JsonObject, value: object) -> None:
    """Refuse content that does not match.

    A schema that cannot be judged is the client's mistake, not the worker's: JSON is then enough.
    """
    try:
        found = mismatch(schema, value)
    except UnusableSchema:
        return
    if found is not None:
        where, keyword = found
        raise ChatReplyRefused(
            f"The content does not match the strict schema: {where[:_LONGEST_ECHO]} breaks '{keyword}'.",
            param=_CONTENT,
        )


def _parse_text(message: Mapping[str, object], key: str) -> str | None:
    text = message.get(key)
    if text is not None and not isinstance(text, str):
        raise ChatReplyRefused(f"'message.{key}' must be a string or null.", param=f"message.{key}")
    return clean_text(text) if text else None


def _parse_call(value: object, path: str) -> JsonObject:
    function = value.get("function") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(function, Mapping):
        raise ChatReplyRefused(f"'{path}' must be an object with a 'function'.", param=path)
    if value.get("type", "function") != "function":
        raise ChatReplyRefused(f"'{path}.type' must be 'function'.", param=f"{path}.type")
    return {
        "id": _required_text(value, "id", path),
        "type": "function",
        "function": {
            "name": _required_text(function, "name", f"{path}.function"),
            "arguments": _parse_arguments(function.get("arguments"), f"{path}.function.arguments"),
        },
    }


def _required_text(given: Mapping[str, object], key: str, path: str) -> str:
    text = given.get(key)
    if not isinstance(text, str) or not text:
        raise ChatReplyRefused(f"'{path}.{key}' must be a string that is not empty.", param=f"{path}.{key}")
    return clean_text(text)


def _parse_arguments(value: object, path: str) -> str:
    """The arguments' JSON text: an object becomes it, nothing becomes an empty object (details D8)."""
    if isinstance(value, dict):
        return clean_text(json.dumps(value, ensure_ascii=False))
    if value is not None and not isinstance(value, str):
        raise ChatReplyRefused(f"'{path}' must be the text of a JSON object.", param=path)
    return clean_text(value) if value and value.strip() else "{}"


def _parse_usage(value: object) -> JsonObject | None:
    """The counts among what was reported; None when there is none. Usage is shown, never charged on (contract C7)."""
    if not isinstance(value, Mapping):
        return None
    usage: JsonObject = {name: value[name] for name in _COUNTS if _is_count(value.get(name))}
    details = value.get("completion_tokens_details")
    if isinstance(details, Mapping) and _is_count(details.get("reasoning_tokens")):
        usage["completion_tokens_details"] = {"reasoning_tokens": details["reasoning_tokens"]}
    return usage or None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT32_MAX


def _arguments(call: JsonObject) -> str:
    function = call["function"]
    return str(function["arguments"]) if isinstance(function, dict) else ""
