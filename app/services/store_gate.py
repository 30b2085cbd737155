"""How request threads use the object store: few at a time, and never for long (details D13)."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from app.adapters.breaker import Breaker
from app.adapters.object_store import StoreAway
from app.domain.errors import StorageUnavailable

CALL_SECONDS = 3.0
"""Longest that a request waits for the store."""

LINE_SECONDS = 1.0
"""Longest that a request waits for its turn, while the others get on."""

STALLED_SECONDS = 0.5
"""A call that takes longer makes newcomers turn away at once, so that only a quarter of the threads is caught."""

REST_SECONDS = 5.0
RETRY_AFTER_SECONDS = 5

Returned = TypeVar("Returned")


class StoreGate:
    """One process's places for calls of the store."""

    def __init__(self, threads: int) -> None:
        places = max(1, threads // 4)
        self._free = threading.BoundedSemaphore(places)
        self._pool = ThreadPoolExecutor(places, thread_name_prefix="store")
        self._breaker = Breaker(REST_SECONDS)
        self._begun: dict[int, float] = {}
        self._after_rest: dict[Hashable, Callable[[], None]] = {}
        self._after_rest_lock = threading.Lock()

    @property
    def is_resting(self) -> bool:
        """Whether the store failed just now and is left alone."""
        return self._breaker.is_open

    def call(self, work: Callable[[], Returned]) -> Returned:
        """Run some calls of the store, in a thread of their own.

        Raises StorageUnavailable when they fail, take too long, or cannot begin soon; and what
        else they raise.
        """
        if self.is_resting or not self._free.acquire(timeout=self._patience):
            self._refuse()
        running = self._pool.submit(self._run, work)
        try:
            result = running.result(CALL_SECONDS)
        except (StoreAway, StillWaiting):
            self._breaker.failed()
            self._refuse()
        self._breaker.succeeded()
        return result

    def when_rested(self, key: Hashable, work: Callable[[], None]) -> None:
        """Do this once the store may be asked again; one work for each key."""
        with self._after_rest_lock:
            is_first = not self._after_rest
            self._after_rest[key] = work
        if is_first:
            self._wait_for_rest()

    def _wait_for_rest(self) -> None:
        timer = threading.Timer(self._breaker.seconds_left, self._rested)
        timer.daemon = True
        timer.start()

    def _rested(self) -> None:
        if self.is_resting:
            self._wait_for_rest()
            return
        with self._after_rest_lock:
            works, self._after_rest = list(self._after_rest.values()), {}
        for work in works:
            work()

    @property
    def _patience(self) -> float:
        oldest = min(list(self._begun.values()), default=float("inf"))
        return 0.0 if time.monotonic() - oldest > STALLED_SECONDS else LINE_SECONDS

    def _run(self, work: Callable[[], Returned]) -> Returned:
        with self._place():
            return work()

    @contextmanager
    def _place(self) -> Iterator[None]:
        own = threading.get_ident()
        self._begun[own] = time.monotonic()
        try:
            yield
        finally:
            self._begun.pop(own, None)
            self._free.release()

    def _refuse(self) -> NoReturn:
        raise StorageUnavailable(
            "The horde's store for images cannot be reached right now. Try again shortly.",
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )
