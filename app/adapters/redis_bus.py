"""Redis: signals to fronts, verdicts to waiting submits, and short debounces.

Everything here is best effort. A call that fails says so by its return value,
within bounded time, and the sweep or a fallback poll makes up for it.
"""

import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import orjson
import structlog
from prometheus_client import Counter
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from app.adapters.breaker import Breaker
from app.domain.redis_keys import QUEUE_CHANNEL, TIMEOUTS, ChatEvent, QueueSignal, chat_channel, chat_event, verdict_key
from config.metrics import begin_at_zero
from config.settings import Settings

SOCKET_TIMEOUT_SECONDS = 0.4
"""A frozen Redis costs a call this long, twice at the most, and then nothing until the breaker closes."""

REST_SECONDS = 1.0
VERDICT_TTL_SECONDS = 60

SIGNALS_SENT = Counter("horde_signals_sent", "Signals published on Redis.", ["kind"])
SIGNALS_LOST = Counter("horde_signals_lost", "Signals that could not be published.", ["kind"])
for _signals in (SIGNALS_SENT, SIGNALS_LOST):
    begin_at_zero(_signals, "chat", "queue")

log = structlog.get_logger(__name__)


class RedisBus:
    """One process's line to Redis."""

    def __init__(self, settings: Settings) -> None:
        options = {
            "socket_connect_timeout": SOCKET_TIMEOUT_SECONDS,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "retry": Retry(NoBackoff(), 1),
        }
        self._redis = Redis.from_url(settings.redis_url, socket_timeout=SOCKET_TIMEOUT_SECONDS, **options)
        self._waiting = Redis.from_url(
            settings.redis_url, socket_timeout=settings.verdict_wait_seconds + SOCKET_TIMEOUT_SECONDS, **options
        )
        self._breaker = Breaker(REST_SECONDS)

    def ping(self) -> None:
        """Ask the server for a sign of life; raises RedisError when it gives none."""
        self._redis.ping()

    def close(self) -> None:
        """Close every connection."""
        self._redis.close()
        self._waiting.close()

    def publish_chat(self, request_id: UUID, event: ChatEvent) -> None:
        """Wake the front that waits for this request."""
        self._publish("chat", [(chat_channel(str(request_id)), chat_event(event))])

    def publish_chats(self, request_ids: Iterable[UUID], event: ChatEvent) -> None:
        """Wake the fronts that wait for these requests, in one round trip."""
        self._publish("chat", [(chat_channel(str(request_id)), chat_event(event)) for request_id in request_ids])

    def publish_queue(self, signal: QueueSignal) -> None:
        """Wake a held pop that could take a request of this class."""
        self._publish("queue", [(QUEUE_CHANNEL, signal.encode())])

    def _publish(self, kind: str, messages: list[tuple[str, bytes]]) -> None:
        if not messages:
            return
        if self._breaker.is_open:
            SIGNALS_LOST.labels(kind).inc(len(messages))
            return
        try:
            if len(messages) == 1:
                self._redis.publish(*messages[0])
            else:
                pipeline = self._redis.pipeline(transaction=False)
                for channel, payload in messages:
                    pipeline.publish(channel, payload)
                pipeline.execute()
        except RedisError as error:
            self._note_failure("publish", error)
            SIGNALS_LOST.labels(kind).inc(len(messages))
            return
        self._breaker.succeeded()
        SIGNALS_SENT.labels(kind).inc(len(messages))

    def put_verdict(self, generation_id: UUID, verdict: dict[str, object], *, delivered: UUID | None = None) -> None:
        """Hand a verdict to the submit that may be waiting for it.

        `delivered` is the request that is done with it: the front that waits for that is woken first, in the
        same round trip.
        """
        signals = 0 if delivered is None else 1
        if self._breaker.is_open:
            SIGNALS_LOST.labels("chat").inc(signals)
            return
        key = verdict_key(str(generation_id))
        pipeline = self._redis.pipeline(transaction=False)
        if delivered is not None:
            pipeline.publish(chat_channel(str(delivered)), chat_event(ChatEvent.DONE))
        pipeline.rpush(key, orjson.dumps(verdict))
        pipeline.expire(key, VERDICT_TTL_SECONDS)
        try:
            pipeline.execute()
        except RedisError as error:
            self._note_failure("put_verdict", error)
            SIGNALS_LOST.labels("chat").inc(signals)
            return
        self._breaker.succeeded()
        SIGNALS_SENT.labels("chat").inc(signals)

    def wait_for_verdict(self, generation_id: UUID, seconds: float) -> dict[str, object] | None:
        """Wait up to `seconds` for a generation's verdict; None when none came or Redis is away."""
        if self._breaker.is_open or seconds <= 0:
            return None
        try:
            found = self._waiting.blpop([verdict_key(str(generation_id))], timeout=seconds)
        except RedisError as error:
            self._note_failure("wait_for_verdict", error)
            return None
        if not isinstance(found, list | tuple):
            return None
        verdict = orjson.loads(found[1])
        return verdict if isinstance(verdict, dict) else None

    def first_in(self, key: str, milliseconds: int) -> bool:
        """Whether this is the first call for `key` within that time; True too when Redis cannot tell."""
        if self._breaker.is_open:
            return True
        try:
            return bool(self._redis.set(key, b"1", nx=True, px=milliseconds))
        except RedisError as error:
            self._note_failure("first_in", error)
            return True

    def read(self, key: str) -> bytes | None:
        """Return what is kept under a key; None when there is nothing or Redis is away."""
        if self._breaker.is_open:
            return None
        try:
            found = self._redis.get(key)
        except RedisError as error:
            self._note_failure("read", error)
            return None
        return found if isinstance(found, bytes) else None

    def has_listeners(self, channel: str) -> bool:
        """Whether anybody is subscribed to a channel; False too when Redis is away."""
        if self._breaker.is_open:
            return False
        try:
            counted = self._redis.pubsub_numsub(channel)
        except RedisError as error:
            self._note_failure("has_listeners", error)
            return False
        return any(count for _, count in counted)

    def write(self, key: str, value: bytes, seconds: float) -> None:
        """Keep a value under a key for some time."""
        if self._breaker.is_open:
            return
        try:
            self._redis.set(key, value, px=max(1, int(1000 * seconds)))
        except RedisError as error:
            self._note_failure("write", error)

    def note(self, key: str, place: int, value: bytes, *, most: int, seconds: int) -> None:
        """Keep a value at a whole-numbered place of a series, of which the last `most` places are kept.

        The series is gone `seconds` after its last value.
        """
        if self._breaker.is_open:
            return
        try:
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.zremrangebyscore(key, place, place)
            pipeline.zadd(key, {value: place})
            pipeline.zremrangebyscore(key, "-inf", place - most)
            pipeline.expire(key, seconds)
            pipeline.execute()
        except RedisError as error:
            self._note_failure("note", error)

    def noted(self, key: str, since: int) -> list[bytes]:
        """Return the values of a series from a place on; none while Redis is away."""
        if self._breaker.is_open:
            return []
        try:
            found: Any = self._redis.zrange(key, since, "+inf", byscore=True)
        except RedisError as error:
            self._note_failure("noted", error)
            return []
        return list(found)

    def add_up(self, counts: Iterable[tuple[str, int, int]]) -> list[int]:
        """Add to counters, each kept for so many seconds, in one round trip; return them, or nothing without Redis."""
        if self._breaker.is_open:
            return []
        pipeline = self._redis.pipeline(transaction=False)
        for key, amount, seconds in counts:
            pipeline.incrby(key, amount)
            pipeline.expire(key, seconds)
        try:
            answers = pipeline.execute()
        except RedisError as error:
            self._note_failure("add_up", error)
            return []
        self._breaker.succeeded()
        return [int(total) for total in answers[::2]]

    def counters(self, keys: list[str]) -> list[int]:
        """Return these counters, 0 for one that is not there; nothing while Redis is away."""
        if self._breaker.is_open:
            return []
        try:
            found: Any = self._redis.mget(keys)
        except RedisError as error:
            self._note_failure("counters", error)
            return []
        return [int(value or 0) for value in found]

    def keep_out(self, source: str, until: float) -> None:
        """Note until when an address is kept out; a later time that is there already stays."""
        now = time.time()
        try:
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.zadd(TIMEOUTS, {source: until}, gt=True)
            pipeline.zremrangebyscore(TIMEOUTS, "-inf", now)
            pipeline.execute()
        except RedisError as error:
            self._note_failure("keep_out", error)

    def kept_out(self, most: int) -> dict[str, float] | None:
        """Return the addresses that are kept out, each with its end; None while Redis is away."""
        if self._breaker.is_open:
            return None
        try:
            found: Any = self._redis.zrange(
                TIMEOUTS, time.time(), "+inf", byscore=True, offset=0, num=most, withscores=True
            )
        except RedisError as error:
            self._note_failure("kept_out", error)
            return None
        return {member.decode(): float(score) for member, score in found}

    def members_with(self, key: str, member: str, seconds: int) -> int:
        """Put a member into a set that is kept for so many seconds; return how many it has, 0 while Redis is away."""
        if self._breaker.is_open:
            return 0
        try:
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.sadd(key, member)
            pipeline.expire(key, seconds, nx=True)
            pipeline.scard(key)
            return int(pipeline.execute()[2])
        except RedisError as error:
            self._note_failure("members_with", error)
            return 0

    def _note_failure(self, call: str, error: RedisError) -> None:
        self._breaker.failed()
        log.warning("redis.unreachable", call=call, error=type(error).__name__)
