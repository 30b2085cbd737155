"""Fetches a request's remote images into the store, for the process that decodes (images I1, I3, I7).

A server may take its time, so this runs many at once and apart from decoding. One host
holds a few of the places at most: while it is slow, the images of others go on.
"""

import threading
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, Any
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from prometheus_client import Counter
from psycopg.types.json import Jsonb
from sqlalchemy import Row, text

from app.adapters.image_fetch import FetchRules, fetch
from app.domain.images.parts import FETCH_FAILED, image_refusal
from app.domain.task_names import TaskName
from app.services.preparing import begin, begin_again, lease_seconds, settle_failure
from app.services.runtime import Runtime
from app.services.stage_images import fetched_key, is_to_be_fetched, staged_key
from config.fault_points import FaultPoint, reach

PLACES_OF_A_HOST = 6
"""Requests whose images one process fetches from the same host at once, of the 16 threads in the Procfile."""

FETCHES_DEFERRED = Counter("horde_image_fetches_deferred", "Requests that wait because their image's host is busy.")

log = structlog.get_logger(__name__)


class HostBusy(Exception):
    """As many images as may be are being fetched from the host already."""


class HostPlaces:
    """Which fetches of each host are under way in this process, and which wait for one of them to end."""

    def __init__(self, call: Callable[[UUID], object], most: int = PLACES_OF_A_HOST) -> None:
        self._call = call
        self._most = most
        self._taken: Tally[str] = Tally()
        self._waiting: defaultdict[str, dict[UUID, None]] = defaultdict(dict)
        self._lock = threading.Lock()

    @contextmanager
    def of(self, host: str, request_id: UUID) -> Iterator[None]:
        """Hold one of the host's places. Raises HostBusy when there is none; the request is called when there is."""
        with self._lock:
            if self._taken[host] >= self._most:
                self._waiting[host][request_id] = None
                raise HostBusy
            self._taken[host] += 1
        try:
            yield
        finally:
            self._leave(host)

    def _leave(self, host: str) -> None:
        with self._lock:
            self._taken[host] -= 1
            if not self._taken[host]:
                del self._taken[host]
            waiting = self._waiting[host]
            called = next(iter(waiting), None)
            if called is not None:
                del waiting[called]
            if not waiting:
                del self._waiting[host]
        if called is not None:
            self._call(called)


class FetchImages:
    """The use case, with what this process is fetching. Safe to call from many threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._under_way: set[UUID] = set()
        self._under_way_lock = threading.Lock()
        self._places = HostPlaces(lambda request_id: runtime.sender.send(TaskName.FETCH_IMAGES, str(request_id)))
        settings = runtime.settings
        self._rules = FetchRules(
            seconds=settings.image_fetch_seconds,
            most_bytes=settings.image_limit_bytes,
            allowed_hosts=settings.fetchable_hosts,
        )

    def __call__(self, request_id: UUID) -> None:
        """Fetch what is remote and let the images be prepared; a no-op for a request that does not wait for it."""
        with self._under_way_lock:
            if request_id in self._under_way:
                return
            self._under_way.add(request_id)
        try:
            self._attempt(request_id)
        finally:
            self._under_way.discard(request_id)

    def _attempt(self, request_id: UUID) -> None:
        """One attempt; copies of its message that run beside it must not count as more when the process dies."""
        row = begin(self._runtime, request_id)
        if row is None:
            return
        try:
            settle_failure(self._runtime, row, lambda: self._fetch_all(row))
        except HostBusy:
            # It waits for a call from this process; should that get lost, the sweep has it.
            begin_again(self._runtime, row, pause=lease_seconds(self._runtime), attempts=row.attempts - 1)
            FETCHES_DEFERRED.inc()

    def _fetch_all(self, row: Row[Any]) -> None:
        sources, seconds_left = list(row.sources), self._rules.seconds
        with TemporaryFile() as staged:
            self._runtime.store.download(staged_key(row.folder), staged)
            for number, source in enumerate(sources):
                if not is_to_be_fetched(source):
                    continue
                begun = monotonic()
                self._fetch(row.request_id, staged, source, max(0.1, seconds_left))
                seconds_left -= monotonic() - begun
                sources[number] = {**source, "fetched": True}
        reach(FaultPoint.IMAGES_FETCHED)
        self._pass_on(row.request_id, sources)

    def _fetch(self, request_id: UUID, staged: IO[bytes], source: Mapping[str, Any], seconds: float) -> None:
        """Fetch one image. A setting may have changed since its submit, so everything is checked again."""
        if not self._runtime.settings.image_fetch:
            raise image_refusal(source["path"], FETCH_FAILED, "this horde fetches no images.")
        staged.seek(source["offset"])
        url = staged.read(source["size"]).decode()
        with TemporaryFile() as target:
            with self._places.of(_host_of(url), request_id):
                fetch(url, source["path"], target, replace(self._rules, seconds=seconds))
            target.seek(0)
            self._runtime.store.put(fetched_key(source), target, "application/octet-stream")

    def _pass_on(self, request_id: UUID, sources: list[dict[str, Any]]) -> None:
        values = {"id": request_id, "sources": Jsonb(sources), "lease": lease_seconds(self._runtime)}
        with self._runtime.database.statements() as transaction:
            kept = transaction.execute(_FETCHED, values).first()
        if kept is not None:
            log.info("images.fetched", request_id=str(request_id))
            self._runtime.sender.send(TaskName.PREPARE_IMAGES, str(request_id))


def _host_of(url: str) -> str:
    """Return the host of a URL that was checked at its submit."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


_FETCHED = text(
    """
    UPDATE request_media m
    SET sources = :sources, attempts = 0, failures = 0, next_dispatch_at = now() + make_interval(secs => :lease)
    FROM horde_requests r
    WHERE m.request_id = :id AND r.id = m.request_id AND r.state = 'preparing'
    RETURNING 1
    """
)
