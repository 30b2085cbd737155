"""Readers of single JSON values: the value in its type, or OpenAI's refusal of it."""

import re
from collections.abc import Collection, Mapping, Sequence

from app.domain.contract import refusals

JsonObject = dict[str, object]

INT32_MAX = 2**31 - 1
"""Largest count of tokens that is taken: it fits every column that holds one."""


def without_nulls(value: Mapping[str, object]) -> JsonObject:
    """The members that are not null: null means absent, before every other rule (details D2)."""
    return {key: member for key, member in value.items() if member is not None}


def as_object(value: object, path: str) -> JsonObject:
    """An object without its null members."""
    if not isinstance(value, Mapping):
        raise refusals.invalid_type(path, "an object", value)
    return without_nulls(value)


def as_whole_object(value: object, path: str) -> JsonObject:
    """An object as it came: for schemas, in which null is a value."""
    if not isinstance(value, dict):
        raise refusals.invalid_type(path, "an object", value)
    return value


def as_array(value: object, path: str, expected: str, *, most: int | None = None) -> list[object]:
    """An array of at most `most` items; `expected` names it in the refusal."""
    if not isinstance(value, list):
        raise refusals.invalid_type(path, expected, value)
    if most is not None and len(value) > most:
        raise refusals.array_too_long(path, most, len(value))
    return value


def as_string(value: object, path: str, *, most: int | None = None, pattern: re.Pattern[str] | None = None) -> str:
    """A string of at most `most` characters that matches `pattern` whole."""
    if not isinstance(value, str):
        raise refusals.invalid_type(path, "a string", value)
    if most is not None and len(value) > most:
        raise refusals.string_too_long(path, most, len(value))
    if pattern is not None and not pattern.fullmatch(value):
        raise refusals.pattern_mismatch(path, pattern.pattern)
    return value


def as_boolean(value: object, path: str) -> bool:
    """A boolean."""
    if not isinstance(value, bool):
        raise refusals.invalid_type(path, "a boolean", value)
    return value


def as_integer(value: object, path: str, low: int, high: int) -> int:
    """An integer from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise refusals.invalid_type(path, "an integer", value)
    if not low <= value <= high:
        raise refusals.out_of_range(path, value, refusals.Bounds(low, high, "integer"))
    return value


def as_number(value: object, path: str, low: float, high: float) -> float:
    """A number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusals.invalid_type(path, "a decimal", value)
    if not low <= value <= high:
        raise refusals.out_of_range(path, value, refusals.Bounds(low, high))
    return float(value)


def as_choice(value: object, path: str, supported: Sequence[str]) -> str:
    """One of the supported strings."""
    text = as_string(value, path)
    if text not in supported:
        raise refusals.invalid_value(path, text, supported)
    return text


def refuse_unknown_keys(value: Mapping[str, object], known: Collection[str], path: str) -> None:
    """Refuse the first key of an object at `path` that is not known."""
    for key in value:
        if key not in known:
            raise refusals.unknown_key(f"{path}.{key}")
