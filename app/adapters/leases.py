"""Leases and progress streams in Redis: one script a step, so that no step is ever done by half (details D6, D15).

Everything here is best effort, as on the bus: a call that fails says so by its return
value, within bounded time, and costs timeliness and never an answer (ADR 0024).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog
from prometheus_client import Counter
from redis import Redis
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.exceptions import RedisError
from redis.retry import Retry

from app.adapters.breaker import Breaker
from app.adapters.redis_bus import REST_SECONDS, SOCKET_TIMEOUT_SECONDS
from app.domain.progress import MOST_POSTS, LeaseState, PostedText, PostOutcome, ProgressPost
from app.domain.progress_entries import ProgressEntry
from app.domain.redis_keys import (
    HEARTBEATS,
    HEARTBEATS_WATCH,
    ChatEvent,
    chat_channel,
    chat_event,
    lease_key,
    progress_key,
)
from config.settings import Settings

FREEZE_MILLISECONDS = 2_000
"""A cancel that has read what was posted is settled within this time, or the posts go on."""

MARK_MILLISECONDS = 600_000
"""The mark that a job was cancelled or has ended is kept this long: longer than a worker that lost touch goes on."""

ACKNOWLEDGED_MILLISECONDS = 60_000
"""A worker that was told of a cancel, and did not hear it, may ask again for this long."""

LEASES_LOST = Counter("horde_lease_writes_lost", "Steps of a lease that Redis did not take.", ["step"])

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLease:
    """What a lease holds: whose job it is, which model writes, whether it is streamed, what it may post, how long."""

    generation_id: UUID
    request_id: UUID
    key_digest: str
    model: str
    streamed: bool
    max_bytes: int
    life_seconds: float
    restored: bool = False


@dataclass(frozen=True, slots=True)
class OpenLease:
    """A lease as it stands, and the sequence number that it takes next."""

    state: LeaseState
    next_seq: int


@dataclass(frozen=True, slots=True)
class Posted:
    """What a post came to."""

    outcome: PostOutcome
    next_seq: int


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a generation posted, from its first post on; not complete when Redis may have lost any of it."""

    text: PostedText
    is_complete: bool


class LeaseStore:
    """One process's way to the leases."""

    def __init__(self, settings: Settings) -> None:
        self._redis = Redis.from_url(
            settings.leases_redis_url,
            socket_timeout=SOCKET_TIMEOUT_SECONDS,
            socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
            socket_keepalive=True,
            health_check_interval=10,
            retry=Retry(NoBackoff(), 1),
        )
        self._breaker = Breaker(REST_SECONDS)
        self._retention = 1000 * settings.progress_retention_seconds
        self._silence = int(1000 * settings.heartbeat_seconds)
        self._open = self._script("open_lease")
        self._post = self._script("post_progress")
        self._freeze = self._script("freeze_posts")
        self._mark = self._script("mark_lease")
        self._silent = self._script("take_silent")

    def close(self) -> None:
        """Close every connection."""
        self._redis.close()

    def open(self, lease: NewLease) -> OpenLease | None:
        """Write a job's lease, or renew the one that it has; None when Redis is away."""
        found = self._run(
            "open",
            self._open,
            [lease_key(str(lease.generation_id)), progress_key(str(lease.request_id))],
            [
                str(lease.generation_id),
                str(lease.request_id),
                lease.key_digest,
                int(lease.streamed),
                lease.max_bytes,
                int(1000 * lease.life_seconds),
                int(lease.restored),
                lease.model,
            ],
        )
        return None if found is None else OpenLease(LeaseState(found[0].decode()), found[1])

    def post(self, key_digest: str, post: ProgressPost) -> Posted | None:
        """Take one post of a worker, in one round trip; None when Redis is away."""
        generation_id = str(post.generation_id)
        entry = ProgressEntry(
            generation_id=generation_id, seq=post.seq, delta=post.delta, reasoning_delta=post.reasoning_delta
        )
        found = self._run(
            "post",
            self._post,
            [lease_key(generation_id), HEARTBEATS],
            [
                generation_id,
                key_digest,
                "" if post.seq is None else post.seq,
                post.bytes,
                MOST_POSTS,
                self._retention,
                ACKNOWLEDGED_MILLISECONDS,
                progress_key(""),
                chat_channel(""),
                chat_event(ChatEvent.PROGRESS),
                *_flat(entry),
            ],
        )
        return None if found is None else Posted(PostOutcome(found[0].decode()), found[1])

    def freeze(self, request_id: UUID, generation_id: UUID) -> Frozen | None:
        """Read what a generation posted and take no more text for a moment; None when Redis is away."""
        found = self._run(
            "freeze",
            self._freeze,
            [lease_key(str(generation_id)), progress_key(str(request_id))],
            [str(generation_id), FREEZE_MILLISECONDS],
        )
        if found is None:
            return None
        return Frozen(PostedText(found[1].decode(), found[2].decode()), is_complete=bool(found[0]))

    def submitted(self, request_id: UUID, generation_id: UUID) -> None:
        """Delete the lease of a job whose reply came; what it posted stays for a while."""
        if self._breaker.is_open:
            LEASES_LOST.labels("submitted").inc()
            return
        try:
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.delete(lease_key(str(generation_id)))
            pipeline.zrem(HEARTBEATS, str(generation_id))
            pipeline.pexpire(progress_key(str(request_id)), self._retention)
            pipeline.execute()
        except RedisError as error:
            self._note_failure("submitted", error)

    def cancelled(self, request_id: UUID, generation_id: UUID) -> None:
        """Let the worker's next post tell it that its job was cancelled."""
        self._leave_mark(request_id, generation_id, LeaseState.CANCELLED, [])

    def ended(self, request_id: UUID, generation_id: UUID, *, streamed: bool) -> None:
        """End the lease of a job that failed; a streamed one says so to who reads its text."""
        marker = _flat(ProgressEntry(generation_id=str(generation_id), ended=True)) if streamed else []
        self._leave_mark(request_id, generation_id, LeaseState.ENDED, marker)

    def note_listening(self) -> None:
        """Say that this web process can hear posts."""
        self._run("listening", self._silent, [HEARTBEATS, HEARTBEATS_WATCH], ["web", *self._watch(0)])

    def silent(self, most: int) -> list[UUID]:
        """Return jobs whose workers posted before and then fell silent, while posts could be heard all along."""
        found = self._run("silent", self._silent, [HEARTBEATS, HEARTBEATS_WATCH], ["sweep", *self._watch(most)])
        return [UUID(each.decode()) for each in found or ()]

    def forget(self, generation_id: UUID) -> None:
        """Listen for this job no more."""
        if self._breaker.is_open:
            return
        try:
            self._redis.zrem(HEARTBEATS, str(generation_id))
        except RedisError as error:
            self._note_failure("forget", error)

    def _watch(self, most: int) -> list[int]:
        """Return the figures of the watch: a break of half the silence is one, and begins the count anew."""
        return [self._silence, self._silence // 2, most, self._silence // 2]

    def _leave_mark(self, request_id: UUID, generation_id: UUID, state: LeaseState, marker: list[str]) -> None:
        self._run(
            state.value,
            self._mark,
            [lease_key(str(generation_id)), HEARTBEATS, progress_key(str(request_id))],
            [
                str(generation_id),
                state.value,
                MARK_MILLISECONDS,
                self._retention,
                chat_channel(str(request_id)),
                chat_event(ChatEvent.PROGRESS),
                *marker,
            ],
        )

    def _script(self, name: str) -> Script:
        return self._redis.register_script((Path(__file__).parent / "lua" / f"{name}.lua").read_text())

    def _run(self, step: str, script: Script, keys: list[str], values: list[Any]) -> Any:
        if self._breaker.is_open:
            LEASES_LOST.labels(step).inc()
            return None
        try:
            return script(keys=keys, args=values)
        except RedisError as error:
            self._note_failure(step, error)
            return None

    def _note_failure(self, step: str, error: RedisError) -> None:
        self._breaker.failed()
        LEASES_LOST.labels(step).inc()
        log.warning("redis.unreachable", call=f"lease.{step}", error=type(error).__name__)


def _flat(entry: ProgressEntry) -> list[str]:
    return [part for field in entry.encode().items() for part in field]
