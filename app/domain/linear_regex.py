"""Regular expressions whose search takes time linear in the text, whatever the pattern (contract C6, native API N6).

Patterns come from strangers and operators, texts from strangers. The engine is RE2: it knows
no look-around and no back-references, and bounds the memory that a pattern may compile to.
"""

import re
from functools import lru_cache

import re2

MAX_PATTERN = 2000
"""Longest pattern in characters."""

STRANGERS_BYTES = 256 * 2**10
"""What a stranger's pattern may compile to: some milliseconds of work."""

OPERATORS_BYTES = 8 * 2**20
"""What an operator's pattern may compile to."""

_REMEMBERED = 512
_UNICODE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-fA-F]{4})")


class UnusablePattern(ValueError):
    """The engine cannot run this pattern; the message says why."""


class LinearRegex:
    """One compiled pattern."""

    def __init__(self, pattern: str, *, ignore_case: bool = False, most_bytes: int = STRANGERS_BYTES) -> None:
        if len(pattern) > MAX_PATTERN:
            raise UnusablePattern(f"it is longer than {MAX_PATTERN} characters")
        options = re2.Options()
        options.log_errors = False
        options.case_sensitive = not ignore_case
        options.max_mem = most_bytes
        try:
            self._compiled = re2.compile(_UNICODE_ESCAPE.sub(r"\1\\x{\2}", pattern), options)
        except (re2.error, UnicodeEncodeError) as error:
            raise UnusablePattern(_reason(error)) from None

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._compiled.search(text) is not None

    def replaced(self, text: str, replacement: str) -> str:
        """The text with every match replaced; the replacement is taken literally."""
        return str(self._compiled.sub(replacement.replace("\\", "\\\\"), text))


@lru_cache(maxsize=_REMEMBERED)
def compiled(pattern: str, *, ignore_case: bool = False, most_bytes: int = STRANGERS_BYTES) -> LinearRegex:
    """The pattern, compiled once.

    Raises UnusablePattern.
    """
    return LinearRegex(pattern, ignore_case=ignore_case, most_bytes=most_bytes)


def _reason(error: Exception) -> str:
    cause = error.args[0] if error.args else ""
    return cause.decode("utf-8", "replace") if isinstance(cause, bytes) else str(cause)
