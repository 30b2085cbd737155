"""The OpenAPI 3.1 document of the native API, from its routes and what stands beside them (operations O6)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flask import Flask
from pydantic import BaseModel, TypeAdapter
from werkzeug.routing import Rule

from app.api.operations import ATTRIBUTE, Key, Operation
from app.api.shapes import Refusal
from app.domain import errors

VERSION = "2.0"
PREFIX = "/api/v2"
COMPONENTS = "#/components/schemas/{model}"
JSON = "application/json"

UNDOCUMENTED = ("/v2/", "/internal/", "/api", "/.well-known/")
"""Prefixes of paths that have no place in the document: the alias, a front's own routes, and the pages about it."""

METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH")

_ARGUMENT = re.compile(r"<(?:(\w+):)?(\w+)>")

_EVERYWHERE: tuple[type[errors.HordeError], ...] = (errors.BadRequest, errors.ServiceUnavailable)
_OF_A_KEY: tuple[type[errors.HordeError], ...] = (
    errors.InvalidApiKey,
    errors.DeletedUser,
    errors.UserBanned,
    errors.SharedKeyExpired,
)
_OF_A_BODY: tuple[type[errors.HordeError], ...] = (errors.PayloadTooLarge,)

EXAMPLES: Mapping[str, Any] = {
    "document": "terms",
    "filter_id": "1",
    "report_id": "1",
    "user_id": "0",
    "name": "koboldcpp/Demo-8B",
}

DESCRIPTION = """The routes for requesters, workers, accounts and statistics. `/v2` is a short alias of `/api/v2`.

The key goes in the header `apikey`; `0000000000` is the anonymous one. Errors are `{message, rc}`, with `errors`
instead of `rc` where keys of a body cannot be used. Every answer may be read by a page of any origin."""


def build_document(app: Flask) -> dict[str, Any]:
    """Return the document for an app's routes."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for rule, method, operation in described(app):
        path = _ARGUMENT.sub(r"{\2}", rule.rule)
        docstring = app.view_functions[rule.endpoint].__doc__ or ""
        paths.setdefault(path, {})[method.lower()] = _operation(rule, operation, docstring, schemas) | {
            "operationId": f"{operation.tag}_{rule.endpoint.rpartition('.')[2]}"
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Horde", "version": VERSION, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"apikey": {"type": "apiKey", "in": "header", "name": "apikey"}},
        },
    }


def public_rules(app: Flask) -> Iterator[tuple[Rule, str]]:
    """Yield every route that the document must hold, with each of its methods."""
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith(PREFIX) or not rule.rule.startswith(UNDOCUMENTED):
            for method in METHODS:
                if method in (rule.methods or ()):
                    yield rule, method


def described(app: Flask) -> Iterator[tuple[Rule, str, Operation]]:
    """Yield those routes with what stands beside them.

    Raises AttributeError for a route that nobody described.
    """
    for rule, method in public_rules(app):
        yield rule, method, getattr(app.view_functions[rule.endpoint], ATTRIBUTE)


def _operation(rule: Rule, operation: Operation, docstring: str, schemas: dict[str, Any]) -> dict[str, Any]:
    first, _, rest = docstring.strip().partition("\n\n")
    shown: dict[str, Any] = {
        "tags": [operation.tag],
        "summary": " ".join(first.split()),
        "parameters": [*_path_parameters(rule), *_query(operation), *_headers(operation)],
        "responses": _responses(rule, operation, schemas),
    }
    if rest:
        shown["description"] = "\n".join(line.strip() for line in rest.splitlines())
    if operation.key is not Key.NONE:
        shown["security"] = [{"apikey": []}] if operation.key is Key.REQUIRED else [{}, {"apikey": []}]
    if operation.body is not None:
        shown["requestBody"] = {"required": True, "content": _content(operation.body, schemas, "validation")}
    return shown


def _path_parameters(rule: Rule) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
            **({"example": EXAMPLES[name]} if name in EXAMPLES else {}),
        }
        for _, name in _ARGUMENT.findall(rule.rule)
    ]


def _query(operation: Operation) -> Iterator[dict[str, Any]]:
    if operation.query is None:
        return
    schema = operation.query.model_json_schema(ref_template=COMPONENTS)
    shared = schema.get("$defs", {})
    for name, field in schema["properties"].items():
        shown = _inlined(field, shared)
        yield {"name": name, "in": "query", "required": False, "schema": _without_null(shown)}


def _inlined(field: Any, shared: Mapping[str, Any]) -> Any:
    """Return a schema with its references replaced: a query's are few and small."""
    if isinstance(field, list):
        return [_inlined(item, shared) for item in field]
    if not isinstance(field, dict):
        return field
    if "$ref" in field:
        return shared[field["$ref"].rpartition("/")[2]] | {key: item for key, item in field.items() if key != "$ref"}
    return {key: _inlined(item, shared) for key, item in field.items()}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument that is left out rather than null."""
    others = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(others) != 1:
        return schema
    rest = {key: item for key, item in schema.items() if key not in {"anyOf", "default"}}
    return dict(others[0]) | rest


def _headers(operation: Operation) -> Iterator[dict[str, Any]]:
    for name, meaning in operation.headers.items():
        yield {"name": name, "in": "header", "required": False, "description": meaning, "schema": {"type": "string"}}


def _responses(rule: Rule, operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for status, body in operation.answers.items():
        shown[str(status)] = {"description": _meaning(body), "content": _content(body, schemas, "serialization")}
    by_status: dict[int, list[type[errors.HordeError]]] = {}
    for refusal in _refusals(rule, operation):
        by_status.setdefault(refusal.status, []).append(refusal)
    content = _content(Refusal, schemas, "serialization")
    for status, refusals in sorted(by_status.items()):
        if str(status) not in shown:
            codes = ", ".join(sorted({f"`{refusal.rc}`" for refusal in refusals}))
            shown[str(status)] = {"description": codes, "content": content}
    return shown


def _refusals(rule: Rule, operation: Operation) -> Iterable[type[errors.HordeError]]:
    # What fills a place in the path may hold a slash, and then name no route.
    of_a_path = (errors.NotFound,) if rule.arguments else ()
    of_a_key = () if operation.key is Key.NONE else _OF_A_KEY
    of_a_body = () if operation.body is None else _OF_A_BODY
    return dict.fromkeys((*_EVERYWHERE, *of_a_path, *of_a_key, *of_a_body, *operation.refuses))


def _meaning(body: Any) -> str:
    if isinstance(body, str):
        return "A page." if body == "text/html" else "Text."
    if isinstance(body, Mapping):
        return str(body["description"])
    described = body if isinstance(body, type) and issubclass(body, BaseModel) else None
    return " ".join((described.__doc__ or "").split()) if described else "A list."


def _content(body: Any, schemas: dict[str, Any], mode: Any) -> dict[str, Any]:
    if isinstance(body, str):
        return {body: {"schema": {"type": "string"}}}
    if isinstance(body, Mapping):
        return {str(body.get("x-media-type", JSON)): {"schema": {k: v for k, v in body.items() if k != "x-media-type"}}}
    schema = TypeAdapter(body).json_schema(ref_template=COMPONENTS, mode=mode)
    schemas.update(schema.pop("$defs", {}))
    if isinstance(body, type) and issubclass(body, BaseModel):
        schemas[body.__name__] = schema
        schema = {"$ref": COMPONENTS.format(model=body.__name__)}
    return {JSON: {"schema": schema}}
