"""Rate limits over a real Valkey: in one process, over several, through time, and while Redis is away."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from redis import Redis

from app.adapters.redis_bus import RedisBus
from app.domain.rate_limits import LimitName
from app.services.rate_limits import Allowance, RateLimits
from config.settings import Settings

MINUTES = 60


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    seconds: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Source:
    """Somebody who calls a route of one limit, over one process after the other."""

    processes: list[RateLimits]
    name: LimitName
    source: str = "1.2.3.4"
    made: int = field(default=0)

    def call(self) -> Allowance:
        process = self.processes[self.made % len(self.processes)]
        self.made += 1
        allowance = process.count([(self.name, self.source)])
        assert allowance is not None
        return allowance

    def admitted(self, calls: int) -> int:
        return sum(not self.call().is_spent for _ in range(calls))


@pytest.fixture
def settings(quiet_redis: str) -> Settings:
    return Settings(_env_file=None, database_url="postgresql://nobody.invalid/none", redis_url=quiet_redis)


@pytest.fixture
def bus(settings: Settings, redis: Redis) -> Iterator[RedisBus]:
    del redis  # it empties the database
    made = RedisBus(settings)
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_limit_lets_through_exactly_what_it_says(bus: RedisBus, settings: Settings, clock: Clock) -> None:
    source = Source([RateLimits(bus, settings, clock)], LimitName.DEFAULT)
    assert source.admitted(400) == settings.rate_default_per_minute


def test_the_next_window_begins_anew(bus: RedisBus, settings: Settings, clock: Clock) -> None:
    source = Source([RateLimits(bus, settings, clock)], LimitName.SHARED_KEYS)
    assert source.admitted(9) == 5
    clock.seconds += MINUTES
    assert source.admitted(9) == 5


def test_sources_do_not_count_for_each_other(bus: RedisBus, settings: Settings, clock: Clock) -> None:
    limits = RateLimits(bus, settings, clock)
    Source([limits], LimitName.SHARED_KEYS).admitted(9)
    assert Source([limits], LimitName.SHARED_KEYS, "5.6.7.8").admitted(9) == 5
    assert Source([limits], LimitName.MODES).admitted(9) == 9


def test_processes_count_together_to_within_a_part_of_the_limit_each(
    bus: RedisBus, settings: Settings, clock: Clock
) -> None:
    processes = [RateLimits(bus, settings, clock) for _ in range(4)]
    most = settings.rate_default_per_minute
    admitted = Source(processes, LimitName.DEFAULT).admitted(4 * most)
    assert most <= admitted <= most * (1 + len(processes) / 20)


def test_a_small_limit_is_exact_over_processes(bus: RedisBus, settings: Settings, clock: Clock) -> None:
    processes = [RateLimits(bus, settings, clock) for _ in range(3)]
    assert Source(processes, LimitName.SHARED_KEYS).admitted(30) == settings.rate_shared_keys_per_minute


def test_most_calls_need_no_round_trip(bus: RedisBus, settings: Settings, clock: Clock, redis: Redis) -> None:
    source = Source([RateLimits(bus, settings, clock)], LimitName.WORKER_CALLS)
    source.admitted(2)
    assert redis.keys("horde:rate:*") == []
    source.admitted(1)
    (key,) = redis.keys("horde:rate:*")
    assert (redis.get(key), 0 < int(redis.ttl(key)) <= 2) == (b"3", True)


@pytest.mark.parametrize("name", list(LimitName))
def test_zero_is_no_limit(bus: RedisBus, settings: Settings, name: LimitName) -> None:
    without = settings.model_copy(update={f"rate_{name.value}": 0})
    assert RateLimits(bus, without).count([(name, "1.2.3.4")]) is None


def test_all_limits_can_be_switched_off(bus: RedisBus, settings: Settings) -> None:
    limits = RateLimits(bus, settings.model_copy(update={"rate_limits": False}))
    assert limits.count((name, "1.2.3.4") for name in LimitName) is None


def test_without_redis_a_process_goes_by_its_own_calls(settings: Settings, clock: Clock) -> None:
    nowhere = RedisBus(settings.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"}))
    processes = [RateLimits(nowhere, settings, clock) for _ in range(2)]
    source = Source(processes, LimitName.SHARED_KEYS)
    assert source.admitted(30) == 2 * settings.rate_shared_keys_per_minute
    nowhere.close()


def test_the_tightest_limit_is_told(bus: RedisBus, settings: Settings, clock: Clock) -> None:
    allowance = RateLimits(bus, settings, clock).count(
        [(LimitName.TRANSFERS_HOUR, "key"), (LimitName.TRANSFERS_SECOND, "key")]
    )
    assert allowance is not None
    assert allowance.headers() == {
        "X-RateLimit-Limit": "1",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(clock.seconds) + 1),
    }


@pytest.mark.parametrize("period", [1.0, 1.5, 2.5, 4.0])
def test_row_21_whoever_polls_for_twenty_minutes_is_never_refused(
    bus: RedisBus, settings: Settings, clock: Clock, period: float
) -> None:
    source = Source([RateLimits(bus, settings, clock)], LimitName.STATUS)
    begun = clock.seconds
    while clock.seconds < begun + 20 * MINUTES:
        # At the end a client reads twice.
        assert not source.call().is_spent
        clock.seconds += period
    assert source.call().left > settings.rate_status_per_minute // 2
