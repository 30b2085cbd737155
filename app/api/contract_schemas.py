"""JSON Schemas of the bodies that the domain reads itself, from the tables that it reads them by."""

from typing import Any

from app.domain.declaration import (
    FEATURE_NAMES,
    MAX_AMOUNT,
    MAX_BRIDGE_AGENT,
    MAX_THREADS,
    Limit,
    Transport,
)
from app.domain.progress import LARGEST_SEQUENCE
from app.domain.text_reply import STATES
from app.domain.text_request import SAMPLERS, SIZES, TOP_LEVEL
from app.services.faults import WORKER_FAULTS

Schema = dict[str, Any]

INT32_MAX = 2**31 - 1
STRINGS: Schema = {"type": "array", "items": {"type": "string"}}


def text_body() -> Schema:
    """A text request. Other keys are accepted and ignored."""
    params = {name: dict(check.schema) for name, check in {**SIZES, **SAMPLERS}.items()}
    return {
        "type": "object",
        "properties": {name: dict(check.schema) for name, check in TOP_LEVEL.items()}
        | {"params": {"type": "object", "properties": params}},
        "required": ["prompt"],
        "examples": [{"prompt": "Once upon a time", "params": {"max_length": 80}}],
    }


def pop_body() -> Schema:
    """A worker's declaration."""
    count = {"type": "integer", "minimum": 1, "maximum": INT32_MAX}
    properties: Schema = {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "models": STRINGS | {"description": "Models of text jobs."},
        "chat_jobs": {"type": "boolean", "default": False},
        "prompt_jobs": {"type": "boolean", "default": True},
        "model_id": {"type": "string", "description": "The chat model; required with chat_jobs."},
        "chat_features": {"type": "array", "items": {"enum": sorted(FEATURE_NAMES)}},
        "chat_limits": {"type": "object", "properties": {limit.value: {"type": "number"} for limit in Limit}},
        "image_transports": {"type": "array", "items": {"enum": sorted(Transport)}},
        "max_length": count | {"default": 512},
        "max_context_length": count | {"default": 2048},
        "threads": {"type": "integer", "minimum": 1, "maximum": MAX_THREADS, "default": 1},
        "amount": {"type": "integer", "minimum": 1, "maximum": MAX_AMOUNT, "default": 1},
        "bridge_agent": {"type": "string", "maxLength": MAX_BRIDGE_AGENT},
        "nsfw": {"type": "boolean", "default": True},
        "priority_usernames": STRINGS | {"description": "Each as Name#number."},
        "blacklist": STRINGS,
        "softprompts": STRINGS,
        "pop_key": {"type": "string", "minLength": 1, "maxLength": 255},
        "wait": {"type": "number", "minimum": 0, "maximum": 25, "description": "Seconds; read by a front."},
    }
    return {"type": "object", "properties": properties, "required": ["name"]}


def submit_body() -> Schema:
    """A worker's reply to a chat job, its text for a text job, or its fault."""
    return {
        "type": "object",
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "state": {"enum": [*STATES, "faulted"], "default": "ok"},
            "fault": {"enum": sorted(WORKER_FAULTS)},
            "generation": {"type": "string", "description": "Text jobs."},
            "seed": {"type": "integer"},
            "gen_metadata": {"type": "array", "items": {"type": "object"}, "maxItems": 50},
            "message": {"type": "object", "description": "Chat jobs: content, reasoning_content, tool_calls."},
            "finish_reason": {"type": "string"},
            "usage": {"type": "object"},
        },
        "required": ["id"],
    }


def progress_body() -> Schema:
    """One post of a streamed job, or a heartbeat: the id alone."""
    return {
        "type": "object",
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "seq": {"type": "integer", "minimum": 0, "maximum": LARGEST_SEQUENCE},
            "delta": {"type": "string"},
            "reasoning_delta": {"type": "string"},
        },
        "required": ["id"],
    }


def lease_body() -> Schema:
    """The job whose lease is to be restored."""
    return {"type": "object", "properties": {"id": {"type": "string", "format": "uuid"}}, "required": ["id"]}


def transfer_body() -> Schema:
    """Who gets how much."""
    return {
        "type": "object",
        "properties": {"username": {"type": "string"}, "amount": {"type": "number"}},
        "required": ["username", "amount"],
        "examples": [{"username": "Ann#42", "amount": 100}],
    }


def shared_key_body() -> Schema:
    """The terms of a shared key."""
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 3, "maxLength": 255},
            "kudos": {"type": "integer", "minimum": -1},
            "expiry": {"type": "integer", "minimum": -1, "description": "Days from now; -1 for ever."},
            "max_text_tokens": {"type": "integer", "minimum": -1},
        },
    }


REGISTER_FORM: Schema = {
    "x-media-type": "application/x-www-form-urlencoded",
    "type": "object",
    "properties": {"username": {"type": "string"}},
    "required": ["username"],
}
"""The register page's form."""

KEY_FORM: Schema = {
    "x-media-type": "application/x-www-form-urlencoded",
    "type": "object",
    "properties": {"key": {"type": "string"}},
    "required": ["key"],
}
"""The form of the status page that asks for the kudos of a key."""

STATUS_EVENT: Schema = {
    "x-media-type": "text/event-stream",
    "description": "One event; the browser comes back for the next.",
    "type": "object",
    "properties": {
        "event": {"const": "status"},
        "data": {"type": "string", "description": "JSON with the changing part of the page as `html`."},
        "retry": {"type": "integer", "description": "Milliseconds after which the browser asks again."},
    },
    "required": ["event", "data", "retry"],
}
"""What the status page is told: each event of the stream."""
