"""An hour of looks at the horde, in Redis."""

import pytest
from redis import Redis

from app.domain.history import MINUTES
from app.domain.redis_keys import HISTORY
from app.services.history import note_minute, read_hour
from app.services.refresh_queue import refresh_queue
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World


def test_a_look_sees_the_queue_the_workers_and_how_long_answers_waited(world: World) -> None:
    _, generation_id = world.leased()
    world.execute("UPDATE generations SET popped_at = popped_at + interval '8 seconds'")
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    world.pop(prompt_jobs=True, models=["m", "other"])
    world.ask(max_tokens=64)
    refresh_queue(world.runtime)
    look = note_minute(world.runtime)
    assert (look.queued, dict(look.workers)) == (1, {"m": 1, "other": 1})
    assert look.wait_seconds == pytest.approx(8, abs=2)
    assert read_hour(world.runtime, look.at)[-1] == look


def test_the_last_look_of_a_minute_stays_and_what_is_older_than_an_hour_goes(world: World, redis: Redis) -> None:
    now = note_minute(world.runtime).at
    note_minute(world.runtime)
    assert redis.zcard(HISTORY) == 1
    world.bus.note(HISTORY, now - MINUTES, b"an hour ago", most=MINUTES, seconds=60)
    world.bus.note(HISTORY, now - MINUTES + 1, b"within the hour", most=MINUTES, seconds=60)
    assert redis.zcard(HISTORY) == 3
    note_minute(world.runtime)
    assert redis.zcard(HISTORY) == 2


def test_without_an_answer_there_is_no_wait_and_without_a_count_no_queue(world: World) -> None:
    look = note_minute(world.runtime)
    assert (look.queued, look.wait_seconds) == (None, None)


def test_what_cannot_be_read_is_a_gap(world: World) -> None:
    now = note_minute(world.runtime).at
    world.bus.note(HISTORY, now, b"nonsense", most=MINUTES, seconds=60)
    assert read_hour(world.runtime, now) == (None,) * MINUTES
