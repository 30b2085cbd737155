"""Constructors of the refusals of a chat body, in OpenAI's words (reference: OpenAI contract, section 3).

A refusal whose code is null at OpenAI carries `invalid_request`; an unknown or
unimplemented key or value carries `UnsupportedChatParameter` (details D3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.errors import ContractRefusal

UNSUPPORTED = "UnsupportedChatParameter"
"""Code of a key or value that the horde does not implement."""

_ECHOED_CHARACTERS = 200


def shortened(text: str) -> str:
    """Text of the client as it is echoed to it: whole, or its beginning when it is very long."""
    return text if len(text) <= _ECHOED_CHARACTERS else f"{text[:_ECHOED_CHARACTERS]}..."


def refusal(message: str, param: str | None, code: str | None = None) -> ContractRefusal:
    """A 400 with these words."""
    return ContractRefusal(message, param=None if param is None else shortened(param), code=code)


def listed(names: Sequence[str]) -> str:
    """Quoted names as OpenAI lists them: 'a', 'a' and 'b', or 'a', 'b', and 'c'."""
    quoted = [f"'{name}'" for name in names]
    if len(quoted) <= 2:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def type_name(value: object) -> str:
    """The JSON type of a value in OpenAI's words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a decimal number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, Mapping) else "an array"


def missing(path: str) -> ContractRefusal:
    """A required member is not there."""
    return refusal(f"Missing required parameter: '{path}'.", path, "missing_required_parameter")


def invalid_type(path: str, expected: str, value: object) -> ContractRefusal:
    """A member has another JSON type than `expected`."""
    return refusal(
        f"Invalid type for '{path}': expected {expected}, but got {type_name(value)} instead.", path, "invalid_type"
    )


def invalid_value(path: str, value: str, supported: Sequence[str]) -> ContractRefusal:
    """A string is none of the supported ones."""
    return refusal(
        f"Invalid value: '{shortened(value)}'. Supported values are: {listed(supported)}.", path, "invalid_value"
    )


def unknown_key(path: str) -> ContractRefusal:
    """A key that no face knows."""
    return refusal(f"Unknown parameter: '{shortened(path)}'.", path, UNSUPPORTED)


def unsupported_key(path: str, advice: str = "Leave it out.") -> ContractRefusal:
    """A key of OpenAI's that the horde does not implement."""
    return refusal(f"Unsupported parameter: '{path}' is not supported by the horde. {advice}", path, UNSUPPORTED)


def unsupported_value(path: str, value: str) -> ContractRefusal:
    """A value of OpenAI's that the horde does not implement."""
    return refusal(f"Unsupported value: '{path}' does not support '{value}' on the horde.", path, UNSUPPORTED)


def string_too_long(path: str, limit: int, length: int) -> ContractRefusal:
    """A string has more characters than allowed."""
    return refusal(
        f"Invalid '{path}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {length} instead.",
        path,
        "string_above_max_length",
    )


def pattern_mismatch(path: str, pattern: str) -> ContractRefusal:
    """A string has characters that are not allowed."""
    return refusal(
        f"Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '{pattern}'.",
        path,
        "invalid_value",
    )


def array_too_long(path: str, limit: int, length: int) -> ContractRefusal:
    """An array has more items than allowed."""
    return refusal(
        f"Invalid '{path}': array too long. Expected an array with maximum length {limit}, "
        f"but got an array with length {length} instead.",
        path,
        "array_above_max_length",
    )


def empty_array(path: str) -> ContractRefusal:
    """An array has no item and needs one."""
    return refusal(
        f"Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        path,
        "empty_array",
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Smallest and largest value of a number, and OpenAI's word for its kind."""

    low: float
    high: float
    kind: str = "decimal"


def out_of_range(path: str, value: float, bounds: Bounds) -> ContractRefusal:
    """A number is outside its bounds."""
    below = not value >= bounds.low
    side, bound = ("below minimum", f">= {bounds.low}") if below else ("above maximum", f"<= {bounds.high}")
    return refusal(
        f"Invalid '{path}': {bounds.kind} {side} value. Expected a value {bound}, but got {value} instead.",
        path,
        f"{bounds.kind}_{'below_min' if below else 'above_max'}_value",
    )


def needs_tools(path: str) -> ContractRefusal:
    """A field that OpenAI allows only beside `tools`."""
    return refusal(f"Invalid value for '{path}': '{path}' is only allowed when 'tools' are specified.", path)


def model_not_found(model: str) -> ContractRefusal:
    """The 404 for a model name that nothing can have (details D1)."""
    return ContractRefusal(
        f"The model `{shortened(model)}` does not exist or you do not have access to it.",
        code="model_not_found",
        status=404,
    )
