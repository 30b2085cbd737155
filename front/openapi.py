"""The front's OpenAPI 3.1 document: what it answers, from the tables that it answers by."""

from typing import Any

from app.domain.contract import Face
from app.domain.contract.openapi_schema import EXAMPLE_MODEL, chat_request_schema
from front import openapi_schemas as schemas
from front.native_stream import PATHS as STREAM_PATHS

TITLE = "Horde front"
VERSION = "1.0"
DESCRIPTION = """OpenAI-compatible chat completions, answered by volunteers' machines.

Point any client of OpenAI's at `/v1`. Without an `Authorization` header a request is anonymous.
The native API, which this address passes on, has a document of its own at `/api/openapi.json`."""

JSON = "application/json"
Json = dict[str, Any]

_KEYS: list[Json] = [{}, {"bearer": []}]
"""A key, or none: the anonymous one."""

_CHAT_ERRORS: dict[int, str] = {
    400: "The body breaks the contract, or only a size limit stands against it (`no_worker_supports_limit`).",
    401: "The key is unknown, revoked or malformed.",
    402: "Kudos, or a key's own limit, do not suffice.",
    403: "The account may not do this.",
    404: "Unknown model, or no online worker declares what is required (`no_worker_supports_features`).",
    408: "The body came too slowly (`BodyTooSlow`), or no reply came in time (`DeadlineExceeded`).",
    409: "The same operation was begun with another body.",
    413: "The body is too large.",
    415: "The body is compressed.",
    429: "Too many requests of this account wait.",
    500: "A defect of this server.",
    502: "The horde cannot be reached, or the workers that tried failed.",
    503: "Nobody can serve the model now, or this server is full. `Retry-After` is 1 to 60 seconds.",
}

_STREAM_ERRORS: dict[int, str] = {
    400: "A header cannot be used.",
    401: "The key is no key of this horde.",
    404: "No such request for this caller.",
    405: "The route takes another method.",
    502: "The horde cannot be reached.",
    503: "This server is full.",
}


def document() -> Json:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": VERSION, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": {
            "/v1/chat/completions": {"post": _chat()},
            "/v1/models": {"get": _models()},
            "/v1/models/{id}": {"get": _model()},
            **{path.replace("<request_id>", "{id}"): {"get": _progress(path)} for path in STREAM_PATHS},
            "/healthz": {"get": _state("Whether the process is alive.", schemas.HEALTH)},
            "/readyz": {"get": _state("Whether it can serve, and which services are missing.", schemas.READINESS, 503)},
            "/metrics": {"get": _text("Figures of this process.", "text/plain")},
            "/openapi.json": {"get": _state("This document.", {"type": "object"})},
            "/": {"get": _text("How to point a client here.", "text/html")},
            "/chat": {"get": _text("A page to chat with the models that are online.", "text/html")},
            "/docs": {"get": _text("This document, for people.", "text/html")},
            "/pages/{name}": {"get": _asset()},
            "/status/events": {"get": _status_events()},
        },
        "components": {
            "schemas": {
                "ChatRequest": chat_request_schema(Face.FRONT),
                "ChatCompletion": schemas.COMPLETION,
                "ChatCompletionChunk": schemas.CHUNK,
                "Error": schemas.ERROR,
                "Model": schemas.MODEL,
                "Models": schemas.MODELS,
            },
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _chat() -> Json:
    return {
        "operationId": "createChatCompletion",
        "summary": "Ask for a chat completion, plain or as server-sent events.",
        "security": _KEYS,
        "requestBody": {"required": True, "content": {JSON: {"schema": schemas.reference("ChatRequest")}}},
        "responses": {
            "200": {
                "description": "The reply. With `stream: true`, one `data:` line a chunk, then `data: [DONE]`.",
                "headers": _headers(),
                "content": {
                    JSON: {"schema": schemas.reference("ChatCompletion")},
                    "text/event-stream": {"schema": {"type": "string"}},
                },
            },
            **_errors(*_CHAT_ERRORS),
        },
    }


def _models() -> Json:
    return {
        "operationId": "listModels",
        "summary": "List the models with an online chat worker.",
        "security": _KEYS,
        "responses": {"200": _json("The models by name.", "Models"), **_errors(500, 502, 503)},
    }


def _model() -> Json:
    return {
        "operationId": "retrieveModel",
        "summary": "Show one online model; its name may hold slashes.",
        "security": _KEYS,
        "parameters": [
            {
                "name": "id",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
                "example": EXAMPLE_MODEL,
            }
        ],
        "responses": {"200": _json("The model.", "Model"), **_errors(404, 405, 500, 502, 503)},
    }


def _progress(path: str) -> Json:
    error = {JSON: {"schema": schemas.NATIVE_ERROR}}
    refused = {str(status): {"description": text, "content": error} for status, text in _STREAM_ERRORS.items()}
    return {
        "operationId": "followRequest" if path.startswith("/api") else "followRequestShort",
        "summary": "Follow a request of the native API as server-sent events; `Last-Event-ID` resumes.",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}},
            {"name": "apikey", "in": "header", "schema": {"type": "string"}},
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
        ],
        "responses": {
            "200": {
                "description": "The events.",
                "headers": _headers(),
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            "204": {"description": "Nothing more comes."},
            **refused,
        },
    }


def _asset() -> Json:
    content = {kind: {"schema": {"type": "string"}} for kind in ("text/css", "text/javascript", "image/svg+xml")}
    return {
        "summary": "A file that the pages need.",
        "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}],
        "responses": {
            "200": {"description": "The file.", "headers": _headers(), "content": content},
            **_errors(404, 405, 503),
        },
    }


def _status_events() -> Json:
    error = {JSON: {"schema": schemas.NATIVE_ERROR}}
    return {
        "summary": "The status page's figures as server-sent events, for as long as the page is open.",
        "responses": {
            "200": {
                "description": "Events named `status`, whose data is JSON with the page's part as `html`.",
                "headers": _headers(),
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **{str(status): {"description": _STREAM_ERRORS[status], "content": error} for status in (502, 503)},
        },
    }


def _state(summary: str, schema: Json, *more: int) -> Json:
    answer = {"description": summary, "headers": _headers(), "content": {JSON: {"schema": schema}}}
    return {"summary": summary, "responses": {str(status): answer for status in (200, *more)}}


def _text(summary: str, kind: str) -> Json:
    content = {kind: {"schema": {"type": "string"}}}
    return {
        "summary": summary,
        "responses": {"200": {"description": summary, "headers": _headers(), "content": content}, **_errors(503)},
    }


def _json(description: str, name: str) -> Json:
    return {
        "description": description,
        "headers": _headers(),
        "content": {JSON: {"schema": schemas.reference(name)}},
    }


def _errors(*statuses: int) -> dict[str, Json]:
    """Answers in the envelope. Every status that the chat route has means the same on the others."""
    told = _CHAT_ERRORS | {405: "The route takes another method; `Allow` says which."}
    shown = {str(status): _json(told[status], "Error") for status in statuses}
    for status, answer in shown.items():
        if status in {"429", "503"}:
            answer["headers"] = _headers() | {
                "Retry-After": {"schema": {"type": "integer", "minimum": 1, "maximum": 60}}
            }
    return shown


def _headers() -> Json:
    return {
        "X-Request-Id": {
            "description": "The id of this exchange; also `call_id` in the logs.",
            "schema": {"type": "string"},
        }
    }
