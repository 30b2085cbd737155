"""What was delivered is counted once, by period, whatever happens while it is counted (decision 0057)."""

from uuid import UUID

from sqlalchemy import text

from app.services.settle import settle_batch
from app.services.statistics import MOST_STEPS, Statistics, count_generations
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World
from tests.support.services import wait_until

NOTHING = {"requests": 0, "tokens": 0}


def delivered(world: World, ago: str = "20 seconds") -> UUID:
    """A reply that was accepted so long ago."""
    _, generation_id = world.leased(max_tokens=64)
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    ended(world, generation_id, ago)
    return generation_id


def ended(world: World, generation_id: UUID, ago: str) -> None:
    """Let a generation have ended so long ago."""
    world.execute(
        "UPDATE generations SET ended_at = now() - CAST(:ago AS interval) WHERE id = :id", id=generation_id, ago=ago
    )


def counted(world: World, since: str = "100 days") -> Statistics:
    """Statistics with everything counted that ended since then."""
    world.execute("UPDATE heartbeats SET at = now() - CAST(:since AS interval) WHERE name = 'statistics'", since=since)
    while count_generations(world.runtime) == MOST_STEPS:
        pass
    return Statistics(world.runtime)


def test_a_horde_that_delivered_nothing_has_zeros(world: World) -> None:
    count_generations(world.runtime)
    assert Statistics(world.runtime).totals() == dict.fromkeys(("minute", "hour", "day", "month", "total"), NOTHING)
    assert Statistics(world.runtime).models() == {"day": {}, "month": {}, "total": {}}


def test_each_span_counts_what_lies_in_it(world: World) -> None:
    world.enrich()
    found = [(delivered(world), ago) for ago in ("2 seconds", "10 minutes", "5 hours", "10 days", "80 days")]
    for generation_id, ago in reversed(found):
        ended(world, generation_id, ago)
    statistics = counted(world)
    requests = {span: each["requests"] for span, each in statistics.totals().items()}
    assert requests == {"minute": 1, "hour": 2, "day": 3, "month": 4, "total": 5}
    assert statistics.totals()["total"] == {"requests": 5, "tokens": 100}
    assert statistics.models() == {"day": {"m": 3}, "month": {"m": 4}, "total": {"m": 5}}


def test_counting_again_adds_nothing_and_settlement_is_no_second_delivery(world: World) -> None:
    delivered(world)
    statistics = counted(world, "1 hour")
    settle_batch(world.runtime)
    count_generations(world.runtime)
    assert statistics.totals()["total"]["requests"] == 1


def test_what_failed_is_no_delivery_and_counts_against_its_worker_alone(world: World) -> None:
    _, generation_id = world.leased()
    world.replies.fault(world.owner_key, generation_id, "backend_error")
    world.release(world.leased()[1])
    world.execute("UPDATE generations SET ended_at = now() - interval '5 seconds'")
    assert counted(world, "1 hour").totals()["total"] == NOTHING
    assert world.execute("SELECT fulfilled, uncompleted FROM worker_totals") == [(0, 1)]


def test_a_delivery_whose_transaction_is_still_open_is_counted_later(world: World) -> None:
    first, second = delivered(world), delivered(world)
    world.execute("UPDATE generations SET ended_at = NULL WHERE id = :id", id=second)
    world.execute("UPDATE heartbeats SET at = now() - interval '1 hour' WHERE name = 'statistics'")
    with world.runtime.database.transaction() as slow:
        slow.execute(text("UPDATE generations SET ended_at = now() WHERE id = :id"), {"id": second})
        world.execute("UPDATE generations SET ended_at = now() - interval '30 seconds' WHERE id = :id", id=first)
        count_generations(world.runtime)
        assert Statistics(world.runtime).totals()["total"]["requests"] == 1

    def both_are_counted() -> bool:
        count_generations(world.runtime)
        return Statistics(world.runtime).totals()["total"]["requests"] == 2

    wait_until(both_are_counted, 10, "the second delivery was passed by")


def test_rows_that_no_span_needs_are_forgotten_and_the_total_stays(world: World) -> None:
    delivered(world, "90 days")
    assert counted(world).totals()["total"]["requests"] == 1
    periods = {period for (period,) in world.execute("SELECT period FROM model_statistics")}
    assert periods == {"month", "total"}
