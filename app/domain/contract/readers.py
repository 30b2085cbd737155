"""The readers of the top-level members, in OpenAI's order of checks (reference: OpenAI contract 3.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.domain.contract import refusals
from app.domain.contract.fields import (
    INT32_MAX,
    as_array,
    as_boolean,
    as_choice,
    as_integer,
    as_number,
    as_object,
    as_string,
    refuse_unknown_keys,
)
from app.domain.contract.horde_options import parse_horde_options
from app.domain.contract.labels import (
    MAX_METADATA_KEY,
    MAX_METADATA_PAIRS,
    MAX_METADATA_VALUE,
    MAX_SAFETY_IDENTIFIER,
    parse_metadata,
)
from app.domain.contract.messages import MAX_MESSAGES, parse_messages
from app.domain.contract.response_format import FORMATS, parse_response_format
from app.domain.contract.tools import (
    MAX_TOOLS,
    TOOL_CHOICES,
    parse_parallel_tool_calls,
    parse_tool_choice,
    parse_tools,
)

MAX_STOPS = 4
MAX_OPERATION_KEY = 255
DEFAULT_REASONING_EFFORT = "medium"
REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

Reader = Callable[[object, Mapping[str, Any]], Any]
"""Takes a member's value and what was read before it."""


def parse_operation_key(value: object) -> str:
    """An operation key, from the body or from the header (details D1)."""
    key = as_string(value, "operation_key", most=MAX_OPERATION_KEY)
    if not key:
        raise refusals.refusal(
            "Invalid 'operation_key': empty string. Expected a string with minimum length 1, "
            "but got an empty string instead.",
            "operation_key",
            "empty_string",
        )
    return key


class Use(StrEnum):
    """Where a member's value goes."""

    JOB = "sent to the worker"
    LABEL = "stored, never sent to a worker"
    ANSWER = "shapes the answer"
    HORDE = "read by the horde"


@dataclass(frozen=True, slots=True)
class Member:
    """A top-level member: how it is read, and what of that is told to people."""

    read: Reader
    accepts: str
    default: str = "none"
    use: Use = Use.JOB
    schema: Mapping[str, Any] = field(default_factory=dict)
    """The same as JSON Schema, as far as it can say it."""


def _count(path: str) -> Member:
    return Member(
        lambda value, _read: as_integer(value, path, 1, INT32_MAX),
        f"integer, 1 to {INT32_MAX}",
        schema={"type": "integer", "minimum": 1, "maximum": INT32_MAX},
    )


def _number(path: str, low: int, high: int, default: int) -> Member:
    return Member(
        lambda value, _read: as_number(value, path, low, high),
        f"number, {low} to {high}",
        str(default),
        schema={"type": "number", "minimum": low, "maximum": high},
    )


def _label(path: str, most: int | None = None) -> Member:
    accepts = "string" if most is None else f"string of at most {most} characters"
    schema = {"type": "string"} if most is None else {"type": "string", "maxLength": most}
    return Member(lambda value, _read: as_string(value, path, most=most), accepts, use=Use.LABEL, schema=schema)


def _flag(path: str, use: Use) -> Member:
    return Member(lambda value, _read: as_boolean(value, path), "true or false", "false", use, {"type": "boolean"})


def _read_max_tokens(value: object, read: Mapping[str, Any]) -> int:
    tokens = as_integer(value, "max_tokens", 1, INT32_MAX)
    if read.get("max_completion_tokens", tokens) != tokens:
        raise refusals.refusal(
            "Invalid value for 'max_tokens': 'max_tokens' and 'max_completion_tokens' differ. Send one of them.",
            "max_tokens",
        )
    return tokens


def _read_reasoning_effort(value: object, _read: Mapping[str, Any]) -> str | None:
    effort = as_choice(value, "reasoning_effort", REASONING_EFFORTS)
    return None if effort == DEFAULT_REASONING_EFFORT else effort


def _read_stop(value: object, _read: Mapping[str, Any]) -> tuple[str, ...]:
    """The stop strings without empty ones: many clients send an empty one for none."""
    if isinstance(value, str):
        return (value,) if value else ()
    items = as_array(value, "stop", "one of a string or array of strings", most=MAX_STOPS)
    stops = (as_string(item, f"stop[{index}]") for index, item in enumerate(items))
    return tuple(stop for stop in stops if stop)


def _read_stream_options(value: object, read: Mapping[str, Any]) -> bool:
    """Whether the client wants a usage chunk."""
    options = as_object(value, "stream_options")
    if not read.get("stream"):
        raise refusals.refusal(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options"
        )
    refuse_unknown_keys(options, ("include_usage",), "stream_options")
    return as_boolean(options.get("include_usage", False), "stream_options.include_usage")


READERS: dict[str, Member] = {
    "messages": Member(
        lambda value, _read: parse_messages(value),
        f"1 to {MAX_MESSAGES} messages: system, developer (becomes system), user, assistant, tool",
        "required",
        schema={"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": MAX_MESSAGES},
    ),
    "tools": Member(
        lambda value, _read: parse_tools(value),
        f"up to {MAX_TOOLS} function tools; [] is none",
        schema={"type": "array", "items": {"type": "object"}, "maxItems": MAX_TOOLS},
    ),
    "tool_choice": Member(
        lambda value, read: parse_tool_choice(value, read.get("tools")),
        f"{', '.join(TOOL_CHOICES)}, or an object that names a function; only with tools",
        "auto with tools",
        schema={"anyOf": [{"enum": [*TOOL_CHOICES]}, {"type": "object"}]},
    ),
    "parallel_tool_calls": Member(
        lambda value, read: parse_parallel_tool_calls(value, read.get("tools")),
        "true or false; only with tools",
        "true with tools",
        schema={"type": "boolean"},
    ),
    "max_completion_tokens": _count("max_completion_tokens"),
    "temperature": _number("temperature", 0, 2, 1),
    "top_p": _number("top_p", 0, 1, 1),
    "presence_penalty": _number("presence_penalty", -2, 2, 0),
    "frequency_penalty": _number("frequency_penalty", -2, 2, 0),
    "user": _label("user"),
    "seed": Member(
        lambda value, _read: as_integer(value, "seed", -(2**63), 2**63 - 1),
        "integer of 64 bits",
        schema={"type": "integer", "format": "int64"},
    ),
    "safety_identifier": _label("safety_identifier", MAX_SAFETY_IDENTIFIER),
    "prompt_cache_key": _label("prompt_cache_key"),
    "response_format": Member(
        lambda value, _read: parse_response_format(value), ", ".join(FORMATS), "text", schema={"type": "object"}
    ),
    "max_tokens": Member(
        _read_max_tokens,
        f"integer, 1 to {INT32_MAX}; beside max_completion_tokens only the same number",
        "a setting, DEFAULT_MAX_TOKENS",
        schema={"type": "integer", "minimum": 1, "maximum": INT32_MAX},
    ),
    "reasoning_effort": Member(
        _read_reasoning_effort,
        ", ".join(REASONING_EFFORTS),
        DEFAULT_REASONING_EFFORT,
        schema={"enum": [*REASONING_EFFORTS]},
    ),
    "stop": Member(
        _read_stop,
        f"string, or up to {MAX_STOPS} strings; empty ones are left out",
        schema={"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": MAX_STOPS}]},
    ),
    "stream": _flag("stream", Use.ANSWER),
    "stream_options": Member(
        _read_stream_options,
        "object with include_usage; only with stream",
        "include_usage: false",
        Use.ANSWER,
        {"type": "object", "properties": {"include_usage": {"type": "boolean"}}, "additionalProperties": False},
    ),
    "metadata": Member(
        lambda value, _read: parse_metadata(value),
        f"up to {MAX_METADATA_PAIRS} pairs; keys of {MAX_METADATA_KEY} and strings of {MAX_METADATA_VALUE} characters",
        use=Use.LABEL,
        schema={"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": MAX_METADATA_PAIRS},
    ),
    "horde": Member(lambda value, _read: parse_horde_options(value), "the horde object, below", use=Use.HORDE),
    "operation_key": Member(
        lambda value, _read: parse_operation_key(value),
        f"string of 1 to {MAX_OPERATION_KEY} characters; native API only",
        use=Use.HORDE,
        schema={"type": "string", "minLength": 1, "maxLength": MAX_OPERATION_KEY},
    ),
    "dry_run": Member(
        lambda value, _read: as_boolean(value, "dry_run"),
        "true or false; native API only",
        "false",
        Use.HORDE,
        {"type": "boolean"},
    ),
}
"""Every member but the model, in the order in which they are checked."""

NATIVE_KEYS = frozenset({"operation_key", "dry_run"})
"""Top-level keys of the native face alone (details D1)."""

LABELS = tuple(name for name, member in READERS.items() if member.use is Use.LABEL)
"""Members that are stored and never sent to a worker (details D2)."""

UNSUPPORTED_KEYS: dict[str, str] = {
    "n": "Each request yields one choice: leave it out.",
    "functions": "Use 'tools'.",
    "function_call": "Use 'tool_choice'.",
} | dict.fromkeys(
    (
        "audio",
        "logit_bias",
        "logprobs",
        "modalities",
        "moderation",
        "prediction",
        "prompt_cache_options",
        "prompt_cache_retention",
        "service_tier",
        "store",
        "top_logprobs",
        "verbosity",
        "web_search_options",
    ),
    "Leave it out.",
)
"""OpenAI's keys that the horde does not implement, with what to do instead."""
