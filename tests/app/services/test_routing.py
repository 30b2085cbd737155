"""Who gets which request, beyond what a declaration says; and what a worker's failures lead to."""

from typing import Any
from uuid import UUID

import pytest
from redis import Redis

from app.adapters.database import STATEMENTS
from app.domain.errors import WorkerMaintenance
from app.domain.queue_figures import ClassFigures, QueueFigures, Rank
from app.domain.redis_keys import QUEUE_CHANNEL, QUEUE_FIGURES, WEB_HEARTBEAT
from app.services import accounts
from app.services.aborts import ABORTS_AN_HOUR, note_heartbeats, say_alive
from app.services.claim import FURTHER_WALKS, WALK
from app.services.refresh_queue import measure_speeds, refresh_queue
from app.services.sweep import sweep
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import Listen, World


def worker_id(world: World, name: str) -> str:
    world.pop(name=name)
    world.online._taken_at = float("-inf")
    return str(world.execute("SELECT id FROM workers WHERE name = :name", name=name)[0][0])


def ask_with(world: World, **options: Any) -> UUID:
    return world.ask(horde=options).id


def test_a_request_that_names_a_worker_goes_to_it_alone(world: World) -> None:
    ask_with(world, workers=[worker_id(world, "chosen")])
    assert world.pop().id is None
    assert world.pop(name="chosen").id is not None


def test_a_request_that_excludes_a_worker_goes_to_another(world: World) -> None:
    ask_with(world, workers=[worker_id(world, "excluded")], worker_blacklist=True)
    assert world.pop(name="excluded").id is None
    assert world.pop().id is not None


def test_a_request_for_trusted_workers_waits_for_one(world: World) -> None:
    ask_with(world, trusted_workers=True)
    assert world.pop().id is None
    world.execute("UPDATE users SET trusted = true WHERE id = :id", id=world.owner_id)
    assert world.pop().id is not None


def test_a_request_for_validated_backends_needs_a_known_bridge(world: World) -> None:
    ask_with(world, validated_workers=True)
    assert world.pop(bridge_agent="Homemade:1:x").id is None
    assert world.pop(bridge_agent="KoboldCppEmbedWorker:2:https://example.org").id is not None


def test_an_nsfw_request_is_not_given_to_a_worker_that_takes_none(world: World) -> None:
    ask_with(world, nsfw=True)
    assert world.pop(nsfw=False).id is None
    assert world.pop(nsfw=True).id is not None


def test_a_request_that_wants_no_slow_worker_waits_for_a_measured_one(world: World) -> None:
    ask_with(world, slow_workers=False)
    assert world.pop().id is None
    world.execute(
        "INSERT INTO worker_speeds (worker_id, model, tokens_per_second, samples) SELECT id, 'm', 30, 20 FROM workers"
    )
    assert world.pop().id is not None


def test_a_prompt_with_a_word_that_a_worker_refuses_goes_to_another(world: World) -> None:
    world.pop(name="prude", blacklist=["Bananas", "two words"])
    world.online._taken_at = float("-inf")
    world.ask(messages=[{"role": "user", "content": "Tell me of BANANAS."}])
    assert world.pop(name="prude", blacklist=["Bananas"]).id is None
    assert world.pop().id is not None


def test_a_word_that_nobody_refused_at_submit_is_found_at_the_pop(world: World) -> None:
    request_id = world.ask(messages=[{"role": "user", "content": "Two  words, please."}]).id
    assert world.pop(name="late", blacklist=["two words"]).id is None
    assert world.state_of("horde_requests", request_id) == "queued"
    assert world.execute("SELECT faults FROM horde_requests") == [(0,)]
    assert world.pop().id is not None


def test_the_owners_requests_go_first(world: World) -> None:
    world.ask()
    world.requester_key = world.owner_key
    own = world.ask().id
    assert world.execute("SELECT request_id FROM generations WHERE id = :id", id=world.pop().id) == [(own,)]


def test_requests_of_priority_usernames_go_first(world: World) -> None:
    world.ask()
    with world.runtime.database.transaction() as transaction:
        friend = accounts.create_user(transaction, "friend")
        _, world.requester_key = accounts.create_key(transaction, friend, "test")
    preferred = world.ask().id
    job = world.pop(priority_usernames=[f"friend#{friend}"])
    assert world.execute("SELECT request_id FROM generations WHERE id = :id", id=job.id) == [(preferred,)]


def test_a_worker_in_maintenance_still_serves_its_owner(world: World) -> None:
    world.ask()
    world.execute("UPDATE workers SET maintenance = true")
    with pytest.raises(WorkerMaintenance):
        world.pop()
    # The other worker keeps the model online.
    world.pop(name="second")
    world.requester_key = world.owner_key
    own = world.ask().id
    assert world.execute("SELECT request_id FROM generations WHERE id = :id", id=world.pop().id) == [(own,)]


def test_two_workers_that_both_failed_a_request_do_not_wait_for_each_other(world: World) -> None:
    world.pop(name="second")
    world.online._taken_at = float("-inf")
    world.ask()
    for name in ("box", "second"):
        job = world.pop(name=name)
        assert job.id is not None
        world.replies.fault(world.owner_key, job.id, "backend_error")
    assert world.pop(name="box").id is not None


def test_requests_that_do_not_fit_a_worker_do_not_hide_those_behind(world: World) -> None:
    world.enrich()
    for _ in range(50):
        world.ask(max_tokens=1000)
    fits = world.ask(max_tokens=600).id
    job = world.pop(max_length=700)
    assert world.execute("SELECT request_id FROM generations WHERE id = :id", id=job.id) == [(fits,)]


def crowd(world: World, *, size: int, count: int) -> None:
    """Many entries of one size, all before whatever is asked next: the slots of one request."""
    request_id = world.ask(max_tokens=size).id
    world.execute(
        "INSERT INTO queue_entries (request_id, slot, user_id, class_id, sort_key, max_length, max_context_length,"
        " images, tools)"
        " SELECT r.id, i, q.user_id, q.class_id, q.sort_key - 100000 + i, q.max_length, q.max_context_length,"
        " q.images, q.tools"
        " FROM queue_entries q JOIN horde_requests r ON r.id = q.request_id, generate_series(1, :count) i"
        " WHERE r.id = :id",
        id=request_id,
        count=count,
    )
    world.execute(
        "UPDATE horde_requests SET n = n + :count, waiting = waiting + :count WHERE id = :id",
        id=request_id,
        count=count,
    )


def test_a_request_that_fits_is_found_behind_thousands_of_its_class_that_do_not(world: World) -> None:
    world.enrich()
    crowd(world, size=1000, count=2 * (1 + FURTHER_WALKS) * WALK)
    fits = world.ask(max_tokens=600).id
    pops = [world.pop(max_length=700).id for _ in range(3)]
    assert pops[:2] == [None, None]
    assert world.execute("SELECT request_id FROM generations WHERE id = :id", id=pops[2]) == [(fits,)]


def test_a_look_through_a_class_begins_again_at_its_end_and_never_leaves_its_head(world: World) -> None:
    world.enrich()
    crowd(world, size=1000, count=2 * WALK)
    assert world.pop(max_length=700).id is None
    for _ in range(2):
        fits = world.ask(max_tokens=600).id
        assert fits is not None
        world.execute("UPDATE queue_entries SET sort_key = 0 WHERE request_id = :id", id=fits)
        job = world.pop(max_length=700)
        assert world.execute("SELECT request_id FROM generations WHERE id = :id", id=job.id) == [(fits,)]
        behind = world.ask(max_tokens=600).id
        job = world.pop(max_length=700)
        assert world.execute("SELECT request_id FROM generations WHERE id = :id", id=job.id) == [(behind,)]


def test_a_reply_that_failed_before_counts_one_fault(world: World) -> None:
    request_id, late = world.leased()
    world.execute("UPDATE generations SET deadline_at = now() - interval '1 second'")
    sweep(world.runtime)
    running = world.pop().id
    world.deliver(late, {"message": {"content": None, "tool_calls": [_CALL]}, "finish_reason": "stop"})
    verify_generation(world.runtime, late)
    assert world.state_of("generations", late) == "refused"
    assert world.execute("SELECT faults, state FROM horde_requests WHERE id = :id", id=request_id) == [
        (1, "processing")
    ]
    assert running is not None
    assert world.state_of("generations", running) == "leased"


_CALL = {"id": "call", "type": "function", "function": {"name": "unknown", "arguments": "{}"}}


def fail_often(world: World, times: int) -> None:
    for _ in range(times):
        _, generation_id = world.leased()
        world.replies.fault(world.owner_key, generation_id, "backend_error")
        world.execute("TRUNCATE queue_entries")
        world.execute("UPDATE horde_requests SET state = 'cancelled', waiting = 0, ended_at = now()")


def test_a_worker_that_fails_too_often_in_an_hour_goes_into_maintenance(world: World) -> None:
    fail_often(world, ABORTS_AN_HOUR)
    assert world.execute("SELECT aborts, maintenance FROM workers") == [(ABORTS_AN_HOUR, False)]
    fail_often(world, 1)
    with pytest.raises(WorkerMaintenance, match="more than 20 jobs"):
        world.pop()


def test_a_new_hour_begins_a_new_count(world: World) -> None:
    fail_often(world, ABORTS_AN_HOUR)
    world.execute("UPDATE workers SET aborts_since = now() - interval '61 minutes'")
    fail_often(world, 1)
    assert world.execute("SELECT aborts, maintenance FROM workers") == [(1, False)]


def be_there(world: World, parts: set[str], redis: Redis, listen: Listen) -> None:
    """Let these parts of the horde be there for the next look of the sweep."""
    redis.delete(WEB_HEARTBEAT)
    if "web" in parts:
        say_alive(world.runtime)
    if "front" in parts:
        listen(QUEUE_CHANNEL)


def _noted(world: World) -> set[str]:
    """Parts that the sweep wrote down; the statistics' note is their task's."""
    rows = world.execute("SELECT name FROM heartbeats WHERE name <> 'statistics'")
    return {str(name) for (name,) in rows}


@pytest.mark.parametrize("part", ["sweep", "web", "front"])
@pytest.mark.parametrize("is_back", [True, False], ids=["that is over", "that goes on"])
def test_a_failure_in_an_outage_of_a_part_is_nobodys(
    world: World, redis: Redis, listen: Listen, part: str, is_back: bool
) -> None:
    be_there(world, {"web", "front"}, redis, listen)
    note_heartbeats(world.runtime)
    _, generation_id = world.leased()
    world.execute("UPDATE heartbeats SET at = now() - interval '1 minute' WHERE name = :part", part=part)
    if is_back:
        assert note_heartbeats(world.runtime)
    world.replies.fault(world.owner_key, generation_id, "timeout")
    assert world.execute("SELECT aborts FROM workers") == [(0,)]


def test_a_failure_while_a_part_is_missing_is_nobodys_before_it_is_an_outage(
    world: World, redis: Redis, listen: Listen
) -> None:
    be_there(world, {"web", "front"}, redis, listen)
    note_heartbeats(world.runtime)
    _, generation_id = world.leased()
    redis.delete(WEB_HEARTBEAT)
    assert not note_heartbeats(world.runtime)
    world.replies.fault(world.owner_key, generation_id, "timeout")
    assert world.execute("SELECT aborts FROM workers") == [(0,)]


@pytest.mark.parametrize("parts", [set(), {"web"}, {"front"}, {"web", "front"}], ids=sorted)
def test_the_sweep_notes_the_parts_that_are_there(world: World, redis: Redis, listen: Listen, parts: set[str]) -> None:
    be_there(world, parts, redis, listen)
    assert not note_heartbeats(world.runtime)
    assert _noted(world) == {*parts, "sweep"}
    _, generation_id = world.leased()
    world.replies.fault(world.owner_key, generation_id, "timeout")
    assert world.execute("SELECT aborts FROM workers") == [(1,)]


def test_a_part_that_has_been_away_for_a_day_is_missed_no_more(world: World) -> None:
    world.execute("INSERT INTO heartbeats (name, at) VALUES ('front', now() - interval '25 hours')")
    note_heartbeats(world.runtime)
    assert _noted(world) == {"sweep"}


def test_a_released_job_counts_no_abort(world: World) -> None:
    _, generation_id = world.leased()
    assert world.release(generation_id)
    assert world.execute("SELECT aborts FROM workers") == [(0,)]


def test_a_measured_worker_gets_the_time_that_its_speed_needs(world: World) -> None:
    world.ask(max_tokens=1024)
    unmeasured = world.pop().ttl_seconds
    world.execute(
        "INSERT INTO worker_speeds (worker_id, model, tokens_per_second, samples) SELECT id, 'm', 2, 20 FROM workers"
    )
    world.ask(max_tokens=1024)
    slow = world.pop().ttl_seconds
    assert unmeasured is not None
    assert slow is not None
    assert slow == 4 * unmeasured


def test_speed_is_what_replies_count_for_over_their_time(world: World) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id, {"message": {"content": "word " * 80}, "finish_reason": "stop"})
    verify_generation(world.runtime, generation_id)
    world.execute("UPDATE generations SET submitted_at = popped_at + interval '10 seconds'")
    assert measure_speeds(world.runtime) == 1
    assert world.execute("SELECT model, tokens_per_second, samples FROM worker_speeds") == [("m", 10.0, 1)]


def look_anew(world: World) -> None:
    world.runtime.bus._redis.delete("horde:queue:rest")
    assert refresh_queue(world.runtime)
    world.queue_info._looked_at = float("-inf")


def test_a_status_tells_position_and_wait_among_what_its_workers_could_take(world: World) -> None:
    world.pop(name="elsewhere", model_id="n", models=["n"])
    world.online._taken_at = float("-inf")
    ids = [world.ask(max_tokens=400).id for _ in range(3)]
    world.ask(model="n", max_tokens=400)
    assert world.status(ids[2])["queue_info_at"] is None
    look_anew(world)
    status = world.status(ids[2])
    assert status["queue_position"] == 3
    # 800 tokens ahead, two threads of a worker that counts as a slow one.
    assert status["wait_time"] == 100
    assert status["queue_info_at"] is not None


def test_an_empty_pop_says_why_the_queue_was_passed_over(world: World) -> None:
    world.ask(max_tokens=600)
    world.ask()
    world.ask()
    look_anew(world)
    assert world.pop(model_id="n", models=["n"]).skipped == {"models": 3}
    assert world.pop(max_length=100).skipped == {"max_length": 3}
    assert world.pop(chat_features=[]).skipped == {"prompt_overflow_refused": 3}


def test_is_possible_does_not_turn_false_while_a_worker_covers_the_request(world: World) -> None:
    request_id = world.ask().id
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 hour'")
    world.online._taken_at = float("-inf")
    assert not world.status(request_id)["is_possible"]
    world.execute("UPDATE workers SET last_seen_at = now()")
    world.online._taken_at -= 0.5
    assert world.status(request_id)["is_possible"]


def test_a_selection_that_leaves_nobody_is_no_gap(world: World) -> None:
    status = world.status(ask_with(world, trusted_workers=True))
    assert (status["declaration_gap"], status["limits_gap"]) == (None, None)
    assert (status["is_possible"], status["eligible_workers"]) == (False, 0)


def statements(call: Any) -> float:
    before = STATEMENTS._value.get()
    call()
    return float(STATEMENTS._value.get() - before)


def test_hot_routes_stay_within_their_statements(world: World) -> None:
    request_id = world.ask().id
    world.ask(max_tokens=200)
    world.status(request_id)
    assert statements(lambda: world.ask(max_tokens=200)) <= 3
    # One more counts the queue, where that decides whether kudos are held.
    assert statements(world.ask) <= 4
    assert statements(lambda: world.status(request_id)) <= 2
    assert statements(world.pop) <= 8
    world.execute("DELETE FROM queue_entries")
    world.execute("UPDATE horde_requests SET state = 'cancelled', waiting = 0, ended_at = now()")
    assert statements(world.pop) <= 1
    world.execute("DELETE FROM generations")


def test_many_statuses_are_read_in_one_round_trip_and_only_what_changed_comes_back(world: World) -> None:
    ids = [world.ask().id for _ in range(5)]
    seen = world.read.changed(dict.fromkeys(ids))
    assert set(seen) == {str(each) for each in ids}
    versions: dict[UUID, str | None] = {UUID(key): status["version"] for key, status in seen.items() if status}
    assert world.read.changed(versions) == {}
    world.pop()
    assert statements(lambda: world.read.changed(versions)) == 1
    assert list(world.read.changed(versions)) == [str(ids[0])]


def test_a_status_that_there_is_none_of_is_null(world: World, some_id: UUID) -> None:
    assert world.read.changed({some_id: "seen"}) == {str(some_id): None}


def test_figures_of_classes_that_the_database_does_not_have_are_passed_over(world: World) -> None:
    figures = QueueFigures(0.0, {2_000_000: ClassFigures.of([Rank(1.0, 3, 300)])})
    world.bus.write(QUEUE_FIGURES, figures.encode(), 60)
    assert world.pop().id is None
    world.leased()
