"""The form that the reply's content must have (contract C1)."""

import re

from app.domain.contract import refusals
from app.domain.contract.fields import (
    JsonObject,
    as_boolean,
    as_choice,
    as_object,
    as_string,
    as_whole_object,
    refuse_unknown_keys,
)
from app.domain.contract.schema_shape import Subject
from app.domain.contract.strict_schema import check_strict_schema

FORMATS = ("json_object", "json_schema", "text")
MAX_SCHEMA_NAME = 64

_PATH = "response_format"
_SCHEMA_PATH = "response_format.json_schema"
_SCHEMA_NAME = re.compile(r"^[a-zA-Z0-9_-]+$")


def parse_response_format(value: object) -> JsonObject | None:
    """The requested form; None for text, which is the default and counts as left out."""
    given = as_object(value, _PATH)
    if "type" not in given:
        raise refusals.missing(f"{_PATH}.type")
    kind = as_choice(given["type"], f"{_PATH}.type", FORMATS)
    refuse_unknown_keys(given, ("type", "json_schema") if kind == "json_schema" else ("type",), _PATH)
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "json_object"}
    if "json_schema" not in given:
        raise refusals.missing(_SCHEMA_PATH)
    return {"type": "json_schema", "json_schema": _parse_json_schema(given["json_schema"])}


def strict_schema(response_format: JsonObject | None) -> JsonObject | None:
    """The schema that the content must match exactly, if one was asked for."""
    body = (response_format or {}).get("json_schema")
    if not isinstance(body, dict) or body.get("strict") is not True:
        return None
    schema = body["schema"]
    return schema if isinstance(schema, dict) else None


def _parse_json_schema(value: object) -> JsonObject:
    given = as_object(value, _SCHEMA_PATH)
    refuse_unknown_keys(given, ("name", "description", "schema", "strict"), _SCHEMA_PATH)
    if "name" not in given:
        raise refusals.missing(f"{_SCHEMA_PATH}.name")
    name = as_string(given["name"], f"{_SCHEMA_PATH}.name", most=MAX_SCHEMA_NAME, pattern=_SCHEMA_NAME)
    body: JsonObject = {"name": name}
    if "description" in given:
        body["description"] = as_string(given["description"], f"{_SCHEMA_PATH}.description")
    strict = as_boolean(given.get("strict", False), f"{_SCHEMA_PATH}.strict")
    if "schema" in given:
        body["schema"] = as_whole_object(given["schema"], f"{_SCHEMA_PATH}.schema")
    if strict:
        _check_strict_schema(name, body.get("schema"))
    body["strict"] = strict
    return body


def _check_strict_schema(name: str, schema: object) -> None:
    if not isinstance(schema, dict):
        raise refusals.missing(f"{_SCHEMA_PATH}.schema")
    check_strict_schema(Subject("response_format", name, _PATH, judges_replies=True), schema)
