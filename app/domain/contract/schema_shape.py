"""The shape that every schema of a client must have: JSON Schema that a backend can read (contract C1).

Only shapes are looked at, in one pass over the schema; nothing is resolved and no pattern is
run, so the request path may judge any schema. The words are OpenAI's (reference 3.3).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.domain.contract import refusals
from app.domain.contract.fields import JsonObject
from app.domain.errors import ContractRefusal

Context = tuple[str, ...]
"""Where in a schema something is: the keys on the way to it."""

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE_SCHEMAS = (
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose schema is judged, so that a refusal can name it, and whether replies are held against it."""

    kind: str
    name: str
    param: str
    code: str | None = None
    judges_replies: bool = False

    def refused(self, reason: str) -> ContractRefusal:
        """The refusal of the schema as a whole."""
        return refusals.refusal(f"Invalid schema for {self.kind} '{self.name}': {reason}", self.param, self.code)

    def refused_at(self, context: Context, reason: str) -> ContractRefusal:
        """The refusal of one place in the schema."""
        return self.refused(f"In context={refusals.shortened(repr(context))}, {reason}")


def require_object_schema(subject: Subject, schema: JsonObject) -> None:
    """Refuse a schema whose root is not an object's."""
    kind = schema.get("type")
    if kind != "object":
        raise subject.refused(
            f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{refusals.shortened(str(kind))}\"'."
        )


def check_parameters(subject: Subject, schema: JsonObject) -> None:
    """Accept the parameters of a function, strict or not.

    Raises ContractRefusal.
    """
    require_object_schema(subject, schema)
    if "properties" not in schema:
        raise subject.refused_at((), "object schema missing properties.")
    check_shape(subject, schema, ())


def check_shape(subject: Subject, schema: object, context: Context) -> None:
    """Accept a schema and all below it.

    Raises ContractRefusal for a schema that is no object or boolean, an unknown type, or an array
    that does not say what it holds.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise subject.refused(f"{_echoed(schema)} is not of type 'object', 'boolean'.")
    types = types_of(subject, schema)
    if "array" in types and "items" not in schema:
        raise subject.refused_at(context, "array schema missing items.")
    _check_required(subject, schema)
    for place, child in children(subject, schema):
        check_shape(subject, child, (*context, *place))


def types_of(subject: Subject, schema: JsonObject) -> tuple[str, ...]:
    """The types that a schema allows; none when it does not say."""
    given = schema.get("type", [])
    types = given if isinstance(given, list) else [given]
    for name in types:
        if not isinstance(name, str) or name not in TYPES:
            raise subject.refused(f"{_echoed(name)} is not valid under any of the given schemas.")
    return tuple(types)


def children(subject: Subject, schema: JsonObject) -> Iterator[tuple[Context, object]]:
    """Every schema directly below one, with its place."""
    for key in _SCHEMA_MAPS:
        if key in schema:
            for name, child in _as_map(subject, schema[key]).items():
                yield (key, name), child
    for key in _SCHEMA_LISTS:
        if key in schema:
            yield from _numbered(key, _as_list(subject, schema[key]))
    for key in _SINGLE_SCHEMAS:
        if key in schema:
            child = schema[key]
            # Older dialects give a tuple's schemas as a list of items.
            yield from _numbered(key, child) if key == "items" and isinstance(child, list) else [((key,), child)]


def _numbered(key: str, schemas: list[object]) -> Iterator[tuple[Context, object]]:
    for index, child in enumerate(schemas):
        yield (key, str(index)), child


def _check_required(subject: Subject, schema: JsonObject) -> None:
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise subject.refused(f"{_echoed(required)} is not of type 'array'.")
    for name in required:
        if not isinstance(name, str):
            raise subject.refused(f"{_echoed(name)} is not of type 'string'.")


def _as_map(subject: Subject, value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise subject.refused(f"{_echoed(value)} is not of type 'object'.")
    return value


def _as_list(subject: Subject, value: object) -> list[object]:
    if not isinstance(value, list) or not value:
        raise subject.refused(f"{_echoed(value)} is not an array with at least one schema.")
    return value


def _echoed(value: object) -> str:
    """A value as OpenAI's checker shows it; a large one by its beginning."""
    return refusals.shortened(repr(value))
