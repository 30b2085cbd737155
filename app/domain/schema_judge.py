"""Whether a value matches a client's strict schema, in bounded time (contract C6, reliability D3).

For the verifier's task alone: nothing here runs while a client or a worker waits on a request
thread. Three things keep a hostile schema or reply from costing more than its size: patterns
run on a linear engine, an alternative is judged once for each part of the value, and references
never leave the schema. What is left is bounded by the task's time limits (details D13).
"""

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import UnknownType, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from app.domain.contract.fields import JsonObject
from app.domain.linear_regex import UnusablePattern, compiled


class UnusableSchema(Exception):
    """The schema cannot be judged: the client's doing, not the worker's."""


def mismatch(schema: JsonObject, value: Any) -> tuple[str, str] | None:
    """Where a value first breaks its schema, as a JSON path, and the keyword that it breaks; None when it matches.

    Raises UnusableSchema for what the contract would have refused.
    """
    try:
        found = next(_validator(schema).iter_errors(value), None)
    except (UnknownType, Unresolvable, UnusablePattern, RecursionError, TypeError) as error:
        raise UnusableSchema(type(error).__name__) from None
    return None if found is None else (found.json_path, str(found.validator))


def _validator(schema: JsonObject) -> Validator:
    judged: dict[tuple[int, int], bool] = {}

    def any_of(validator: Any, branches: list[JsonObject], value: object, _schema: JsonObject) -> Iterator[Any]:
        for branch in branches:
            # Both live as long as the validation, so their identities name them.
            key = (id(branch), id(value))
            if key not in judged:
                judged[key] = next(validator.descend(value, branch), None) is None
            if judged[key]:
                return
        yield ValidationError("matches none of the alternatives")

    checked: type[Validator] = extend(Draft202012Validator, {"anyOf": any_of, "pattern": _pattern})  # type: ignore[no-untyped-call]
    return checked(schema, registry=Registry())


def _pattern(_validator: Any, pattern: str, value: object, _schema: JsonObject) -> Iterator[Any]:
    if isinstance(value, str) and not compiled(pattern).found_in(value):
        yield ValidationError("does not match the pattern")
