"""References within a strict schema: each leads to a schema of its own, and none in a circle (reliability D3).

A recursive schema is fine as long as every turn goes one level down into the value. What
applies to one and the same value, through references and alternatives, is counted and bounded.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from app.domain.contract.schema_shape import Context, Subject

MAX_EXPANSION = 2_000
"""Schemas that one value may have to be held against, through references and alternatives."""

MAX_STEPS = 64
"""References and alternatives in a row."""

Schema = dict[str, Any]


class References:
    """The references of one schema, whose schemas are all known by their identity."""

    def __init__(self, subject: Subject, root: Schema, known: Mapping[int, tuple[Context, Schema]]) -> None:
        self._subject = subject
        self._root = root
        self._known = known
        self._expansions: dict[int, tuple[int, int]] = {}

    def check(self) -> None:
        """Follow every reference.

        Raises ContractRefusal.
        """
        for context, schema in self._known.values():
            self._expansion(schema, context, ())

    def _expansion(self, schema: Schema, context: Context, path: tuple[int, ...]) -> tuple[int, int]:
        """How many schemas one value is held against here, and over how many steps the furthest of them is reached."""
        key = id(schema)
        if key in self._expansions:
            return self._expansions[key]
        if key in path:
            raise self._subject.refused_at(context, "'$ref' leads back to itself and never into the value.")
        following = list(schema.get("anyOf", []))
        if "$ref" in schema:
            following.append(self._target(schema["$ref"], context))
        if len(path) >= MAX_STEPS:
            raise self._subject.refused_at(context, f"more than {MAX_STEPS} references in a row.")
        below = [self._expansion(each, self._known[id(each)][0], (*path, key)) for each in following]
        size = 1 + sum(schemas for schemas, _ in below)
        steps = 1 + max((steps for _, steps in below), default=0)
        if size > MAX_EXPANSION:
            raise self._subject.refused_at(
                context, f"references and alternatives expand beyond {MAX_EXPANSION} schemas."
            )
        if steps > MAX_STEPS:
            raise self._subject.refused_at(context, f"more than {MAX_STEPS} references in a row.")
        self._expansions[key] = (size, steps)
        return size, steps

    def _target(self, reference: str, context: Context) -> Schema:
        """The schema that a reference names; only one within this schema will do."""
        if not reference.startswith("#"):
            raise self._subject.refused_at(context, "'$ref' must begin with '#'.")
        found: Any = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(name[:9])] if name.isdecimal() and int(name[:9]) < len(found) else None
            else:
                found = found.get(name) if isinstance(found, dict) else None
        known = self._known.get(id(found))
        if known is None or not (reference == "#" or reference.startswith("#/")):
            raise self._subject.refused_at(
                context, f"reference to component '{reference[:100]}' which was not found in the schema."
            )
        return known[1]
