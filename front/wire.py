"""JSON on the wire: always valid UTF-8, always one line for every reader."""

import orjson

from app.domain.errors import BadRequest
from app.domain.json_boundary import clean_text, parse_worker_object

_LINE_SEPARATORS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)
"""Characters at which some clients split lines; escaped they are the same text (contract reference 4.3)."""


def encode(value: object) -> bytes:
    """JSON bytes without raw line separators. A lone surrogate becomes U+FFFD."""
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        data = orjson.dumps(_clean(value))
    for raw, escaped in _LINE_SEPARATORS:
        if raw in data:
            data = data.replace(raw, escaped)
    return data


def decode_object(data: bytes) -> dict[str, object]:
    """The JSON object that a root answered with; damaged text in it becomes U+FFFD.

    Raises ValueError when it is not a JSON object.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _mended(data)
    if isinstance(value, dict):
        return value
    raise ValueError("not a JSON object")


def _mended(data: bytes) -> object:
    try:
        return parse_worker_object(data)
    except BadRequest as error:
        raise ValueError(error.message) from None


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
