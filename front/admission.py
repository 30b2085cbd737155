"""Who may open one more request (front F1, details D18)."""

import time
from collections import Counter
from collections.abc import Callable
from hashlib import sha256

from front import errors
from front.errors import FrontError

KNOWN_KEY_SECONDS = 300.0
"""How long a key counts as its own source after the native API accepted it."""

KNOWN_KEY_LIMIT = 20_000
"""Keys remembered at once."""


class Admission:
    """A cap on open requests in all, and one a source."""

    def __init__(self, open_limit: int, source_limit: int) -> None:
        self._open_limit = open_limit
        self._source_limit = source_limit
        self._open = 0
        self._by_source: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Requests that are open now."""
        return self._open

    def admit(self, source: str) -> Callable[[], None]:
        """Take a place for `source`. Returns the way to give it back.

        Raises FrontError (503 FrontAtCapacity) when a cap is reached.
        """
        if self._open >= self._open_limit:
            raise FrontError(errors.at_capacity("on this server"))
        if self._by_source[source] >= self._source_limit:
            raise FrontError(errors.at_capacity("from your address or key"))
        self._by_source[source] += 1
        return self._take(source)

    def hold(self) -> Callable[[], None] | None:
        """Take a place that counts against the cap in all only; None when that is reached."""
        if self._open >= self._open_limit:
            return None
        return self._take(None)

    def _take(self, source: str | None) -> Callable[[], None]:
        self._open += 1

        def release() -> None:
            self._open -= 1
            if source is None:
                return
            self._by_source[source] -= 1
            if not self._by_source[source]:
                del self._by_source[source]

        return release


class KnownKeys:
    """Keys that the native API accepted lately, by digest. Any other key counts by its address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[bytes, float] = {}

    def remember(self, key: str) -> None:
        """The native API accepted a request of this key."""
        digest = _digest(key)
        self._until.pop(digest, None)
        if len(self._until) >= KNOWN_KEY_LIMIT:
            del self._until[next(iter(self._until))]
        self._until[digest] = self._clock() + KNOWN_KEY_SECONDS

    def source(self, key: str) -> str | None:
        """The source that a known key is; None for any other."""
        digest = _digest(key)
        if self._until.get(digest, 0.0) <= self._clock():
            return None
        return f"key:{digest.hex()}"


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()[:16]
