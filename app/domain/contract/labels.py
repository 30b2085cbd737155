"""Labels of a request: validated and stored, never sent to a worker (contract C1)."""

from collections.abc import Mapping

from app.domain.contract import refusals
from app.domain.contract.fields import JsonObject, as_string

MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512
MAX_SAFETY_IDENTIFIER = 64


def parse_metadata(value: object) -> JsonObject:
    """Up to 16 pairs of short strings."""
    if not isinstance(value, Mapping):
        raise refusals.invalid_type("metadata", "an object", value)
    if len(value) > MAX_METADATA_PAIRS:
        raise refusals.refusal(
            f"Invalid 'metadata': too many properties. Expected an object with at most {MAX_METADATA_PAIRS} "
            f"properties, but got an object with {len(value)} properties instead.",
            "metadata",
            "object_above_max_properties",
        )
    return {key: _parse_pair(key, text) for key, text in value.items()}


def _parse_pair(key: str, value: object) -> str:
    if len(key) > MAX_METADATA_KEY:
        raise refusals.refusal(
            f"Invalid property name in 'metadata': '{key[:3]}...{key[-3:]}' is too long. Expected a string with "
            f"maximum length {MAX_METADATA_KEY}, but got a string with length {len(key)} instead.",
            f"metadata.{key}",
            "property_name_above_max_length",
        )
    return as_string(value, f"metadata.{key}", most=MAX_METADATA_VALUE)
