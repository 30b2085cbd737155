"""The chat request as JSON Schema, for the OpenAPI documents of both faces.

It is as wide as the contract's rules, never narrower: what the rules accept, the schema
accepts. Rules that JSON Schema cannot say (tool histories, strict schemas) stay in words.
"""

from collections.abc import Mapping

from app.domain.contract.drop_table import NO_OPS
from app.domain.contract.fields import INT32_MAX, JsonObject
from app.domain.contract.horde_options import CHOICES, KEYS, MAX_WORKERS, HordeOptions
from app.domain.contract.labels import (
    MAX_METADATA_KEY,
    MAX_METADATA_PAIRS,
    MAX_METADATA_VALUE,
    MAX_SAFETY_IDENTIFIER,
)
from app.domain.contract.messages import IMAGE_DETAILS, MAX_MESSAGES
from app.domain.contract.readers import (
    MAX_OPERATION_KEY,
    MAX_STOPS,
    NATIVE_KEYS,
    READERS,
    REASONING_EFFORTS,
)
from app.domain.contract.request import MAX_MODEL_NAME, MAX_MODELS, Face
from app.domain.contract.response_format import FORMATS, MAX_SCHEMA_NAME
from app.domain.contract.tools import FUNCTION_NAME, MAX_FUNCTION_NAME, MAX_TOOLS, TOOL_CHOICES

EXAMPLE_MODEL = "demo-8b"

_NOTHING: JsonObject = {"type": "null"}
"""What an unknown member may be: null means that it is not there."""


def chat_request_schema(face: Face) -> JsonObject:
    """The body of a chat request on one face: every member, with its bounds and its default."""
    members = {name: _told(name, schema) for name, schema in _MEMBERS.items()}
    if face is Face.FRONT:
        members = {name: schema for name, schema in members.items() if name not in NATIVE_KEYS} | _no_ops()
    return {
        "type": "object",
        "description": "A chat request. A member that is null counts as left out.",
        "properties": _MODEL_NAMES | members,
        "required": ["messages"],
        "additionalProperties": _NOTHING,
        "oneOf": [_names("model", "models"), _names("models", "model")],
        "example": {"model": EXAMPLE_MODEL, "messages": [{"role": "user", "content": "Hello"}]},
    }


def _names(given: str, absent: str) -> JsonObject:
    return {
        "required": [given],
        "properties": {given: {"not": {"type": "null"}}, absent: {"type": "null"}},
    }


def _told(name: str, schema: JsonObject) -> JsonObject:
    member = READERS[name]
    return {**schema, "description": f"{member.accepts}. Default: {member.default}. Use: {member.use}."}


def _no_ops() -> dict[str, JsonObject]:
    """The members that only the front takes, at the values that it drops."""
    values: dict[str, list[object]] = {}
    for key, value in NO_OPS:
        values.setdefault(key, []).append(value)
    return {key: {"enum": [*found, None], "description": "Dropped: it says nothing."} for key, found in values.items()}


def _or_null(schema: Mapping[str, object]) -> JsonObject:
    """The schema, with null beside: null means absent (details D2)."""
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    if isinstance(enum := schema.get("enum"), list):
        return {"enum": [*enum, None]}
    return {"anyOf": [dict(schema), {"type": "null"}]}


def _object(
    properties: Mapping[str, JsonObject], required: tuple[str, ...] = (), *, closed: bool = False
) -> JsonObject:
    """An object whose optional members may be null; `closed` refuses unknown ones."""
    shown = {name: schema if name in required else _or_null(schema) for name, schema in properties.items()}
    schema: JsonObject = {"type": "object", "properties": shown}
    if required:
        schema["required"] = list(required)
    return schema | ({"additionalProperties": _NOTHING} if closed else {})


_STRING: JsonObject = {"type": "string"}
_BOOLEAN: JsonObject = {"type": "boolean"}
_TOKENS: JsonObject = {"type": "integer", "minimum": 1, "maximum": INT32_MAX}
_ANY_OBJECT: JsonObject = {"type": "object"}


def _number(low: int, high: int) -> JsonObject:
    return _or_null({"type": "number", "minimum": low, "maximum": high})


def _enum(values: tuple[str, ...]) -> JsonObject:
    return {"enum": list(values)}


def _constant(value: str) -> JsonObject:
    return {"const": value}


def _list(items: Mapping[str, object], most: int | None = None, least: int = 0) -> JsonObject:
    schema: JsonObject = {"type": "array", "items": dict(items)}
    schema |= {"minItems": least} if least else {}
    return schema | ({} if most is None else {"maxItems": most})


_FUNCTION_NAME: JsonObject = {"type": "string", "maxLength": MAX_FUNCTION_NAME, "pattern": FUNCTION_NAME.pattern}
_TEXT_PART = _object({"type": _constant("text"), "text": _STRING}, ("type", "text"))
_REFUSAL_PART = _object({"type": _constant("refusal"), "refusal": _STRING}, ("type", "refusal"))
_IMAGE_PART = _object(
    {
        "type": _constant("image_url"),
        "image_url": _object(
            {"url": {"type": "string", "pattern": "^(https?://|data:image/)"}, "detail": _enum(IMAGE_DETAILS)},
            ("url",),
        ),
    },
    ("type", "image_url"),
)
_CALL = _object(
    {
        "id": _STRING,
        "type": _constant("function"),
        "function": _object({"name": _FUNCTION_NAME, "arguments": _STRING}, ("name", "arguments")),
    },
    ("id", "type", "function"),
)


def _content(*parts: JsonObject) -> JsonObject:
    items: JsonObject = parts[0] if len(parts) == 1 else {"anyOf": list(parts)}
    return {"anyOf": [_STRING, _list(items, least=1)]}


_MESSAGE: JsonObject = {
    "anyOf": [
        _object({"role": _enum(("system", "developer")), "content": _content(_TEXT_PART), "name": _STRING})
        | {"required": ["role", "content"]},
        _object({"role": _constant("user"), "content": _content(_TEXT_PART, _IMAGE_PART), "name": _STRING})
        | {"required": ["role", "content"]},
        _object(
            {
                "role": _constant("assistant"),
                "content": _content(_TEXT_PART, _REFUSAL_PART),
                "name": _STRING,
                "tool_calls": _list(_CALL),
            },
            ("role",),
        ),
        _object(
            {"role": _constant("tool"), "content": _content(_TEXT_PART), "tool_call_id": _STRING},
            ("role", "content", "tool_call_id"),
        ),
    ]
}

_TOOL = _object(
    {
        "type": _constant("function"),
        "function": _object(
            {"name": _FUNCTION_NAME, "description": _STRING, "parameters": _ANY_OBJECT, "strict": _BOOLEAN}, ("name",)
        ),
    },
    ("type", "function"),
)

_JSON_SCHEMA = _object(
    {
        "name": {"type": "string", "maxLength": MAX_SCHEMA_NAME, "pattern": "^[a-zA-Z0-9_-]+$"},
        "description": _STRING,
        "schema": _ANY_OBJECT,
        "strict": _BOOLEAN,
    },
    ("name",),
    closed=True,
)


def _horde() -> JsonObject:
    """The `horde` object, from its own tables."""
    shapes: dict[str, JsonObject] = {name: _enum(words) for name, words in CHOICES.items()} | {
        "max_kudos": {"type": "number", "minimum": 0},
        "max_context_length": _TOKENS,
        "workers": _list(_STRING, MAX_WORKERS),
    }
    defaults = HordeOptions().stored()
    return _object({name: shapes.get(name, _BOOLEAN) | _default(defaults[name]) for name in sorted(KEYS)}, closed=True)


def _default(value: object) -> JsonObject:
    return {} if value in (None, []) else {"default": value}


_MODEL_NAMES: dict[str, JsonObject] = {
    "model": {"type": ["string", "null"], "minLength": 1, "maxLength": MAX_MODEL_NAME, "description": "The model."},
    "models": _or_null(_list({"type": "string", "minLength": 1, "maxLength": MAX_MODEL_NAME}, MAX_MODELS, 1))
    | {"uniqueItems": True, "description": "Acceptable models, in place of `model`; their order means nothing."},
}

_MEMBERS: dict[str, JsonObject] = {
    "messages": _list(_MESSAGE, MAX_MESSAGES, 1),
    "tools": _or_null(_list(_TOOL, MAX_TOOLS)),
    "tool_choice": {
        "anyOf": [
            {"enum": [*TOOL_CHOICES, None]},
            _object({"function": _object({"name": _STRING}, ("name",))}, ("function",)),
        ]
    },
    "parallel_tool_calls": _or_null(_BOOLEAN),
    "max_completion_tokens": _or_null(_TOKENS),
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "user": _or_null(_STRING),
    "seed": _or_null({"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}),
    "safety_identifier": _or_null({"type": "string", "maxLength": MAX_SAFETY_IDENTIFIER}),
    "prompt_cache_key": _or_null(_STRING),
    "response_format": _or_null(_object({"type": _enum(FORMATS), "json_schema": _JSON_SCHEMA}, ("type",), closed=True)),
    "max_tokens": _or_null(_TOKENS),
    "reasoning_effort": _or_null(_enum(REASONING_EFFORTS)),
    "stop": {"anyOf": [{"type": ["string", "null"]}, _list(_STRING, MAX_STOPS)]},
    "stream": _or_null(_BOOLEAN),
    "stream_options": _or_null(_object({"include_usage": _BOOLEAN}, closed=True)),
    "metadata": {
        "type": ["object", "null"],
        "maxProperties": MAX_METADATA_PAIRS,
        "propertyNames": {"maxLength": MAX_METADATA_KEY},
        "additionalProperties": {"type": "string", "maxLength": MAX_METADATA_VALUE},
    },
    "horde": _or_null(_horde()),
    "operation_key": _or_null({"type": "string", "minLength": 1, "maxLength": MAX_OPERATION_KEY}),
    "dry_run": _or_null(_BOOLEAN),
}
