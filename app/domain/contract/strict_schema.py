"""OpenAI's subset of JSON Schema, which `strict: true` promises to keep exactly (contract C1, details D22).

A schema that passes here can be judged by the verifier in bounded time: it refers only to
itself, never in a circle, and its patterns run on a linear engine. One pass over the schema,
and no general validator: the request path stays cheap. The words are OpenAI's (reference 3.4).
"""

from dataclasses import dataclass, field
from typing import Any

import orjson

from app.domain.contract.schema_references import References
from app.domain.contract.schema_shape import Context, Subject, children, require_object_schema, types_of
from app.domain.linear_regex import UnusablePattern, compiled

Schema = dict[str, Any]

MAX_LEVELS = 10
"""Objects and arrays within each other."""

MAX_PROPERTIES = 5_000
MAX_BYTES = 256 * 2**10
MAX_ENUM_VALUES = 1_000
MAX_NAME_CHARACTERS = 120_000
"""Characters of all names, enum and const strings together."""

MAX_PATTERNS = 100
"""Patterns of a schema that replies are held against: each is compiled at submit."""

LONG_ENUM = 250
MAX_LONG_ENUM_CHARACTERS = 15_000
"""Characters of one enum that has more than LONG_ENUM values."""

FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
DIALECTS = frozenset(
    f"{scheme}://json-schema.org/{name}{end}"
    for scheme in ("http", "https")
    for name in ("draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema")
    for end in ("", "#")
)
"""Values of `$schema` that change nothing within the subset."""

_NUMBERS = ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minItems", "maxItems")
_TEXTS = ("title", "description", "$ref", "pattern", "format", "$schema")
KEYWORDS = (
    frozenset({"type", "enum", "const", "anyOf", "$ref", "$defs", "definitions", "title", "description", "$schema"})
    | {"properties", "required", "additionalProperties", "items", "pattern", "format"}
    | frozenset(_NUMBERS)
    | frozenset(_COUNTS)
)
"""Every keyword of the subset."""

_SAYS_WHAT = ("type", "anyOf", "$ref", "enum", "const")


def check_strict_schema(subject: Subject, schema: Schema) -> None:
    """Accept a schema of the subset within its limits.

    Raises ContractRefusal with the first thing that is outside.
    """
    require_object_schema(subject, schema)
    if "anyOf" in schema:
        raise subject.refused_at((), "'anyOf' is not permitted at the root.")
    if len(orjson.dumps(schema)) > MAX_BYTES:
        raise subject.refused(f"the schema is larger than {MAX_BYTES} bytes.")
    walk = _Walk(subject, schema)
    walk.visit(schema, (), 0)
    walk.finish()


@dataclass(slots=True)
class _Walk:
    """One pass: what was counted, and which schemas were met."""

    subject: Subject
    root: Schema
    levels: int = 0
    properties: int = 0
    enum_values: int = 0
    patterns: int = 0
    name_characters: int = 0
    met: dict[int, tuple[Context, Schema]] = field(default_factory=dict)

    def visit(self, schema: object, context: Context, level: int) -> None:
        """Check one schema and all below it."""
        if not isinstance(schema, dict):
            raise self.subject.refused_at(context, "the schema must be an object.")
        self.met[id(schema)] = (context, schema)
        self._check_keywords(schema, context)
        types = types_of(self.subject, schema)
        self._check_values(schema, context)
        if "object" in types or "properties" in schema:
            self._check_object(schema, context)
        if "array" in types and "items" not in schema:
            raise self.subject.refused_at(context, "array schema missing items.")
        level += "object" in types or "array" in types
        self.levels = max(self.levels, level)
        for place, child in children(self.subject, schema):
            if place != ("additionalProperties",):
                definition = place[0] in {"$defs", "definitions"}
                self.visit(child, (*context, *place), 0 if definition else level)
        self._check_first_keys(schema)

    def finish(self) -> None:
        """Hold the counts against the limits, and follow every reference."""
        if self.levels > MAX_LEVELS:
            raise self.subject.refused(f"{self.levels} levels of nesting exceeds limit of {MAX_LEVELS}.")
        for count, limit, what in (
            (self.properties, MAX_PROPERTIES, "parameters"),
            (self.enum_values, MAX_ENUM_VALUES, "enum values"),
            (self.name_characters, MAX_NAME_CHARACTERS, "characters of names, enum and const values"),
        ):
            if count > limit:
                raise self.subject.refused(f"{count} {what} exceeds limit of {limit}.")
        References(self.subject, self.root, self.met).check()

    def _check_keywords(self, schema: Schema, context: Context) -> None:
        for key in schema:
            if key not in KEYWORDS or (key == "$schema" and context):
                raise self.subject.refused_at(context, f"'{key[:100]}' is not permitted.")
        if not any(key in schema for key in _SAYS_WHAT):
            raise self.subject.refused_at(context, "schema must have a 'type' key.")

    def _check_object(self, schema: Schema, context: Context) -> None:
        if schema.get("additionalProperties") is not False:
            raise self.subject.refused_at(context, "'additionalProperties' is required to be supplied and to be false.")
        names = dict.fromkeys(schema.get("properties", {}))
        required = dict.fromkeys(schema.get("required", []))
        told = "'required' is required to be supplied and to be an array including every key in properties."
        for name in names:
            if name not in required:
                raise self.subject.refused_at(context, f"{told} Missing '{name[:100]}'.")
        for name in required:
            if name not in names:
                raise self.subject.refused_at(context, f"{told} Extra required key '{name[:100]}' supplied.")
        self.properties += len(names)
        self.name_characters += sum(map(len, names))

    def _check_values(self, schema: Schema, context: Context) -> None:
        """Refuse a keyword whose value no validator could use."""
        for key, value in schema.items():
            expected = expected_value(key, value)
            if expected is not None:
                raise self.subject.refused_at(context, f"'{key}' must be {expected}.")
        self._check_texts(schema, context)
        values = schema.get("enum", [])
        characters = sum(len(value) for value in [*values, schema.get("const")] if isinstance(value, str))
        self.enum_values += len(values)
        self.name_characters += characters
        if len(values) > LONG_ENUM and characters > MAX_LONG_ENUM_CHARACTERS:
            raise self.subject.refused_at(
                context,
                f"an enum of more than {LONG_ENUM} values may have {MAX_LONG_ENUM_CHARACTERS} characters in all.",
            )

    def _check_texts(self, schema: Schema, context: Context) -> None:
        if "$schema" in schema and schema["$schema"] not in DIALECTS:
            raise self.subject.refused_at(context, "'$schema' names an unknown dialect.")
        if "format" in schema and schema["format"] not in FORMATS:
            raise self.subject.refused_at(context, f"'{schema['format'][:100]}' is not a valid format.")
        if "pattern" in schema and self.subject.judges_replies:
            self.patterns += 1
            if self.patterns > MAX_PATTERNS:
                raise self.subject.refused(f"more than {MAX_PATTERNS} patterns.")
            try:
                compiled(schema["pattern"])
            except UnusablePattern as error:
                raise self.subject.refused_at(
                    context,
                    f"'pattern' is not a supported regular expression: {error}. "
                    "Look-around and back-references are not supported.",
                ) from None

    def _check_first_keys(self, schema: Schema) -> None:
        """Refuse alternatives that begin alike: the model could not tell which of them it writes."""
        firsts: set[tuple[str, bytes]] = set()
        for branch in schema.get("anyOf", []):
            if not branch.get("properties"):
                continue
            name, value = next(iter(branch["properties"].items()))
            first = (name, orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
            if first in firsts:
                raise self.subject.refused(
                    "Objects provided via 'anyOf' must not share identical first keys. Consider adding a discriminator "
                    "key or rearranging the properties to ensure the first key is unique."
                )
            firsts.add(first)


def expected_value(keyword: str, value: Any) -> str | None:
    """What a keyword's value should have been, when no validator could use it; None for a good one."""
    if keyword in _TEXTS:
        return None if isinstance(value, str) else "a string"
    if keyword in _COUNTS:
        return None if _is_number(value) and isinstance(value, int) and value >= 0 else "a whole number, 0 or more"
    if keyword in _NUMBERS:
        if keyword == "multipleOf":
            return None if _is_number(value) and value > 0 else "a number above 0"
        return None if _is_number(value) else "a number"
    if keyword == "properties":
        return None if isinstance(value, dict) else "an object"
    if keyword == "enum":
        return None if isinstance(value, list) and value else "an array with at least one value"
    if keyword == "required":
        good = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return None if good else "an array of strings"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
