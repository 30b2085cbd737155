"""The shapes of the front's answers, as JSON Schema (front F3, F4, F5)."""

from typing import Any

from front.completion import FINISH_REASONS
from front.models import OWNER

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
STRING_OR_NULL: Schema = {"type": ["string", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
FINISH: Schema = {"enum": sorted(FINISH_REASONS)}


def reference(name: str) -> Schema:
    """A component of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def exactly(**properties: Schema) -> Schema:
    """An object that has all these members."""
    return {"type": "object", "properties": properties, "required": list(properties)}


TOOL_CALL = exactly(id=STRING, type={"const": "function"}, function=exactly(name=STRING, arguments=STRING))

USAGE = exactly(prompt_tokens=COUNT, completion_tokens=COUNT, total_tokens=COUNT)

X_HORDE = exactly(
    request_id=STRING,
    kudos={"type": "number"},
    charge_basis=STRING_OR_NULL,
    estimated_usage={"type": "array", "items": STRING},
    worker=exactly(id=STRING_OR_NULL, name=STRING_OR_NULL),
    queue_seconds={"type": ["number", "null"]},
    conformance={"enum": ["strict", "best_effort"]},
)

MESSAGE: Schema = {
    "type": "object",
    "properties": {
        "role": {"const": "assistant"},
        "content": STRING_OR_NULL,
        "reasoning_content": STRING,
        "tool_calls": {"type": "array", "items": TOOL_CALL, "minItems": 1},
    },
    "required": ["role", "content"],
}

COMPLETION = exactly(
    id={"type": "string", "pattern": "^chatcmpl-"},
    object={"const": "chat.completion"},
    created=COUNT,
    model=STRING,
    choices={
        "type": "array",
        "minItems": 1,
        "maxItems": 1,
        "items": exactly(index={"const": 0}, message=MESSAGE, finish_reason=FINISH),
    },
    usage=USAGE,
    x_horde=X_HORDE,
)

CHUNK = exactly(
    id={"type": "string", "pattern": "^chatcmpl-"},
    object={"const": "chat.completion.chunk"},
    created=COUNT,
    model=STRING,
    choices={
        "type": "array",
        "maxItems": 1,
        "items": exactly(
            index={"const": 0},
            delta={"type": "object"},
            finish_reason={"enum": [*sorted(FINISH_REASONS), None]},
        ),
    },
)

ERROR = exactly(
    error=exactly(
        message=STRING,
        type={"enum": ["invalid_request_error", "server_error"]},
        param=STRING_OR_NULL,
        code=STRING,
        metadata={"type": ["object", "null"]},
    )
    | {"additionalProperties": False}
)

NATIVE_ERROR = exactly(message=STRING, rc=STRING)

MODEL = exactly(
    id=STRING,
    object={"const": "model"},
    created=COUNT,
    owned_by={"const": OWNER},
    x_horde={
        "type": "object",
        "description": "What its workers offer: workers, threads, the largest limits, features.",
        "properties": {
            "workers": COUNT,
            "threads": COUNT,
            "max_length": {"type": ["integer", "null"]},
            "max_context_length": {"type": ["integer", "null"]},
            "features": {"type": "array", "items": STRING},
        },
    },
)

MODELS = exactly(object={"const": "list"}, data={"type": "array", "items": reference("Model")})

HEALTH = exactly(status={"const": "alive"})

READINESS = exactly(
    status={"enum": ["ready", "not ready"]},
    draining={"type": "boolean"},
    services={"type": "object", "additionalProperties": {"enum": ["reachable", "unreachable"]}},
    unreachable={"type": "array", "items": STRING},
)
