"""Where JSON bytes of a stranger become Python values, within bounded time and memory.

A requester's body that a later step could not store or send on (too deep, integers
beyond 64 bits, NUL, half a surrogate pair) is refused here (details D22). A worker's
body is mended where the damage is only in its text (details D6).
"""

import json
import re
from collections import Counter
from hashlib import sha256
from math import isfinite
from typing import Any, NoReturn

import orjson

from app.domain.errors import BadRequest, ContractRefusal

MAX_NESTING = 64
"""Levels of objects and arrays in a body (details D22)."""

NOT_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble "
    "figuring out how to fix this, please contact us through our help center at help.openai.com.)"
)
"""OpenAI's refusal of a body that is not JSON."""

_ECHOED_KEY = 100
_READ_AGAIN_BYTES = 2**20
_UNREADABLE = "We could not parse the JSON body of your request: "

_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_LONG_INTEGER = re.compile(rb"(?<![\d.eE+\-])-?\d{19,}+(?![.eE])")
_NUL_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")
_SURROGATE_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*+\\u[dD][89a-fA-F]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INT64 = range(-(2**63), 2**63)


def parse_object(raw: bytes) -> dict[str, object]:
    """The JSON object that a requester sent.

    Raises ContractRefusal (400): OpenAI's words for a body that is not a JSON object,
    and the reason in ours for JSON that the horde cannot keep.
    """
    skeleton = _without_strings(raw)
    if _too_deep(skeleton):
        _refuse(f"it nests deeper than {MAX_NESTING} levels. Send a flatter body.")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        if _SURROGATE_ESCAPE.search(raw) and _is_json(raw):
            _refuse("it holds half of a surrogate pair (\\ud800 to \\udfff). Send whole characters.")
        raise ContractRefusal(NOT_JSON) from None
    if not isinstance(value, dict):
        raise ContractRefusal(NOT_JSON)
    if b"\\u0000" in raw and _NUL_ESCAPE.search(raw):
        _refuse("it holds a NUL character (\\u0000). Remove it.")
    if any(_beyond_int64(match.group()) for match in _LONG_INTEGER.finditer(skeleton)):
        _refuse("it holds an integer beyond 64 bits. Send it as a string or a smaller number.")
    if _members(skeleton) != _members(_without_strings(orjson.dumps(value))):
        _refuse(f"{_first_duplicate(raw)} Send each key once.")
    return value


def parse_worker_object(raw: bytes) -> dict[str, object]:
    """The JSON object that a worker sent, with invalid UTF-8 and lone surrogates replaced by U+FFFD.

    Raises BadRequest when it is not a JSON object or nests too deep.
    """
    if _too_deep(_without_strings(raw)):
        raise BadRequest(f"The body nests deeper than {MAX_NESTING} levels.")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _mended(raw)
    if not isinstance(value, dict):
        raise BadRequest("The body must be a JSON object.")
    return value


def clean_text(text: str) -> str:
    """The text with lone surrogates and NUL characters replaced by U+FFFD (details D6, D8)."""
    return _UNSTORABLE.sub("\ufffd", text)


def clean_value(value: Any) -> Any:
    """A JSON value with every text in it cleaned, keys too."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_value(item) for key, item in value.items()}
    return value


def digest_of(data: object) -> str:
    """SHA-256 in hex of the canonical JSON of `data`: keys sorted at every level, no white space."""
    return sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _refuse(reason: str) -> NoReturn:
    raise ContractRefusal(_UNREADABLE + reason)


def _without_strings(raw: bytes) -> bytes:
    """The bytes between the strings of a JSON text.

    Backslashes occur only inside strings, so that without escapes every second piece between
    quotes is a string. Three passes in C: a regular expression takes several times as long.
    """
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(unescaped.split(b'"')[::2])


def _too_deep(skeleton: bytes) -> bool:
    """Whether JSON bytes without their strings nest deeper than the limit.

    Each pass takes the innermost level away, so the number of passes is the depth. Brackets
    that do not pair up are left for the parser to refuse.
    """
    brackets = skeleton.translate(_BRACKETS, _NOT_BRACKETS)
    for _ in range(MAX_NESTING):
        if b"[" * (MAX_NESTING + 1) in brackets:
            return True
        shorter = brackets.replace(b"[]", b"")
        if len(shorter) == len(brackets):
            return False
        brackets = shorter
    return bool(brackets)


def _members(skeleton: bytes) -> int:
    """Number of members of all objects: outside of strings, a colon stands in each and nowhere else.

    Of a key that comes twice the parser keeps the last, so the value has fewer than the text.
    Counting both takes a fraction of the time that noting every key would.
    """
    return skeleton.count(b":")


def _first_duplicate(raw: bytes) -> str:
    """The sentence that says which key comes twice; a large body is not read again to find out."""
    if len(raw) > _READ_AGAIN_BYTES:
        return "one of its objects holds a key twice."
    duplicates: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        counts = Counter(key for key, _ in pairs)
        duplicates.extend(key for key, count in counts.items() if count > 1)

    json.loads(raw, object_pairs_hook=note)
    return f"one of its objects holds the key '{''.join(duplicates[:1])[:_ECHOED_KEY]}' twice."


def _beyond_int64(digits: bytes) -> bool:
    return len(digits) > 20 or int(digits) not in _INT64


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw, parse_constant=_no_constant)
    except ValueError:
        return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _int64(digits: str) -> int:
    if _beyond_int64(digits.encode()):
        raise ValueError("an integer beyond 64 bits")
    return int(digits)


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError("a number beyond 64 bits")
    return number


def _mended(raw: bytes) -> object:
    try:
        value = json.loads(
            raw.decode("utf-8", "replace"),
            parse_constant=_no_constant,
            parse_float=_finite_float,
            parse_int=_int64,
            strict=False,
        )
    except ValueError:
        raise BadRequest("The body is not valid JSON, or holds a number beyond 64 bits.") from None
    return clean_value(value)
