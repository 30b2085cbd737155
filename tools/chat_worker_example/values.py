"""Parsers of single settings: text in, value out. Each raises ValueError with what is wanted."""

import math
from collections.abc import Callable
from pathlib import Path

from .hours import Span, parse_spans

CAPABILITIES = frozenset({"tools", "json_object", "json_schema", "images", "reasoning"})
"""Features: the worker acts on that input."""

GUARANTEES = frozenset(
    {
        "prompt_overflow_refused",
        "tool_choice_enforced",
        "tool_choice_auto_faithful",
        "single_tool_call_enforced",
        "json_object_enforced",
        "json_schema_enforced",
    }
)
"""Guarantees: the reply follows that part of the request exactly."""

TRANSPORTS = ("url", "base64", "messages_url")
"""How images and long conversations may come: what this worker can read."""

MEASURED_ONLY = "prompt_overflow_refused"
"""The one name that nobody can vouch for: only a counter that was checked backs it."""


def base_url(*endings: str) -> Callable[[str], str]:
    """A parser of HTTP addresses that takes these path endings off."""

    def parse(text: str) -> str:
        if not text.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        url = text.rstrip("/")
        for ending in endings:
            url = url.removesuffix(ending)
        return url

    return parse


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers in these bounds."""
    wanted = f"a whole number from {least}" + (f" to {most}" if most is not None else " up")

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least or (most is not None and int(text) > most):
            raise ValueError(f"must be {wanted}")
        return int(text)

    return parse


def number(least: float, most: float, what: str) -> Callable[[str], float]:
    """A parser of numbers in these bounds."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise ValueError(f"must be {what} from {least:g} to {most:g}")
        return value

    return parse


def words(text: str) -> str:
    """A name that people read."""
    if not text.isprintable() or len(text) > 100:
        raise ValueError("must be printable and at most 100 characters long")
    return text


def header(text: str) -> str:
    """A value that goes into an HTTP header."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be printable ASCII without spaces")
    return text


def new_file(text: str) -> Path:
    """A file that may still have to be made."""
    path = Path(text)
    if not path.parent.is_dir():
        raise ValueError("must lie in a folder that exists")
    return path


def existing_file(text: str) -> Path:
    """A file that is there."""
    path = Path(text)
    if not path.is_file():
        raise ValueError("must be a file that exists")
    return path


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser that knows these words alone."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return parse


def names(text: str) -> frozenset[str]:
    """Names of features and guarantees, comma separated."""
    listed = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(listed - CAPABILITIES - GUARANTEES)
    if unknown:
        known = ", ".join(sorted(CAPABILITIES | GUARANTEES))
        raise ValueError(f"does not know {', '.join(unknown)}; known names are {known}")
    return listed


def vouched_names(text: str) -> frozenset[str]:
    """Names that an operator vouches for."""
    listed = names(text)
    if MEASURED_ONLY in listed:
        raise ValueError(f"{MEASURED_ONLY} is measured at the start and cannot be set by hand")
    return listed


def transports(text: str) -> tuple[str, ...]:
    """Ways for images and long conversations to reach this worker, comma separated."""
    listed = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(listed - frozenset(TRANSPORTS))
    if unknown:
        raise ValueError(f"does not know {', '.join(unknown)}; known names are {', '.join(TRANSPORTS)}")
    return tuple(name for name in TRANSPORTS if name in listed)


def switch(text: str) -> bool:
    """Yes or no."""
    if text not in {"yes", "no"}:
        raise ValueError("must be yes or no")
    return text == "yes"


def spans(text: str) -> tuple[Span, ...]:
    """Spans of the day."""
    return parse_spans(text)
