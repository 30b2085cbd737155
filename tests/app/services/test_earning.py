"""Escrow, trust, floors and uptime: what owners get beside the price of a reply."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from app.domain.earning import uptime_reward
from app.domain.system_accounts import ANONYMOUS_ID, ANONYMOUS_KEY, FLOOR_ID
from app.services.escrow import review_escrow
from app.services.kudos import fold_balances
from app.services.settle import settle_batch
from app.services.sweep import sweep
from app.services.uptime import reward_uptime
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World


def serve(world: World) -> int:
    """Serve one request, settle it, and return its reward."""
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    settle_batch(world.runtime)
    [(reward,)] = world.execute("SELECT reward FROM generations WHERE id = :id", id=generation_id)
    assert isinstance(reward, int)
    return reward


def trust(world: World) -> None:
    world.execute("UPDATE users SET trusted = true WHERE id = :id", id=world.owner_id)


def review(world: World, threshold: float) -> None:
    fold_balances(world.runtime)
    settings = world.runtime.settings.model_copy(update={"kudos_trust_threshold": threshold})
    review_escrow(replace(world.runtime, settings=settings))


def test_half_of_a_reward_waits_while_its_owner_is_not_trusted(world: World) -> None:
    reward = serve(world)
    assert world.kudos(world.owner_id) == (14_000 + reward - reward // 2, reward // 2)


def test_a_trusted_owner_gets_the_whole_reward(world: World) -> None:
    trust(world)
    reward = serve(world)
    assert world.kudos(world.owner_id) == (14_000 + reward, 0)


def test_an_owner_who_earned_trust_gets_what_waited(world: World) -> None:
    reward = serve(world)
    world.execute("UPDATE users SET created_at = now() - interval '8 days' WHERE id = :id", id=world.owner_id)
    review(world, threshold=0.05)
    assert world.execute("SELECT trusted FROM users WHERE id = :id", id=world.owner_id) == [(True,)]
    assert world.kudos(world.owner_id) == (14_000 + reward, 0)


@pytest.mark.parametrize(
    ("age", "flagged", "threshold"), [("6 days", False, 0.05), ("8 days", True, 0.05), ("8 days", False, 1000.0)]
)
def test_an_owner_too_new_flagged_or_below_the_threshold_waits_on(
    world: World, age: str, flagged: bool, threshold: float
) -> None:
    serve(world)
    world.execute(
        "UPDATE users SET created_at = now() - CAST(:age AS interval), flagged = :flagged WHERE id = :id",
        id=world.owner_id,
        age=age,
        flagged=flagged,
    )
    before = world.kudos(world.owner_id)
    review(world, threshold)
    assert world.kudos(world.owner_id) == before


def test_reviews_at_once_release_what_waited_once(world: World) -> None:
    reward = serve(world)
    trust(world)
    fold_balances(world.runtime)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: review_escrow(world.runtime), range(4)))
    assert world.kudos(world.owner_id) == (14_000 + reward, 0)


def anonymous_spends(world: World, amount: int) -> None:
    world.execute(
        "INSERT INTO ledger_entries (business_key, kind, user_id, amount)"
        " VALUES (:key, 'charge', 0, -CAST(:amount AS bigint)), (:key, 'fee', 1, :amount)",
        key=f"test:{amount}",
        amount=amount,
    )


def test_an_account_is_lifted_to_its_floor_by_balancing_entries(world: World) -> None:
    user_id, _ = world.account("cy")
    world.execute(
        "INSERT INTO ledger_entries (business_key, kind, user_id, amount)"
        " VALUES ('c', 'charge', :id, -20000), ('c', 'fee', 1, 20000)",
        id=user_id,
    )
    anonymous_spends(world, 80_000)
    before, _ = world.kudos(FLOOR_ID)
    fold_balances(world.runtime)
    assert world.kudos(user_id) == (14_000, 0)
    assert world.kudos(ANONYMOUS_ID) == (-50_000, 0)
    assert world.kudos(FLOOR_ID)[0] == before - 20_000 - 30_000


def test_the_anonymous_account_may_owe_up_to_its_floor(world: World) -> None:
    anonymous_spends(world, 30_000)
    fold_balances(world.runtime)
    assert world.kudos(ANONYMOUS_ID) == (-30_000, 0)


def test_a_lift_is_not_repeated_before_it_is_folded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.kudos.FOLD_BATCH", 2)
    for amount in (60_000, 10_000, 1_000, 500):
        anonymous_spends(world, amount)
    fold_balances(world.runtime)
    assert world.kudos(ANONYMOUS_ID) == (-50_000, 0)


def test_a_hold_is_not_paid_by_the_floor(world: World) -> None:
    user_id, key = world.account("cy", grants=40_000)
    world.requester_key = key
    request_id = world.ask(max_tokens=1024).id
    fold_balances(world.runtime)
    world.cancel(request_id, api_key=key, trusted_front=False)
    fold_balances(world.runtime)
    assert world.kudos(user_id) == (54_000, 0)


def window(world: World, minutes: int = 11) -> None:
    """Let the worker's window have begun so long ago."""
    reward_uptime(world.runtime)
    world.execute("UPDATE workers SET uptime_from = now() - make_interval(mins => :minutes)", minutes=minutes)


def test_a_full_window_with_a_job_is_rewarded_once(world: World) -> None:
    trust(world)
    window(world)
    reward = serve(world)
    [(context, tokens)] = world.execute(
        "SELECT context_tokens, tokens FROM horde_requests r JOIN generations g ON g.request_id = r.id"
    )
    with ThreadPoolExecutor(4) as pool:
        rewarded = list(pool.map(lambda _: reward_uptime(world.runtime), range(4)))
    assert sum(rewarded) == 1
    assert isinstance(context, int)
    assert isinstance(tokens, int)
    assert world.kudos(world.owner_id) == (14_000 + reward + uptime_reward(context + tokens, ["m"]), 0)


def test_uptime_of_an_owner_without_trust_waits_whole(world: World) -> None:
    window(world)
    reward = serve(world)
    assert reward_uptime(world.runtime) == 1
    spendable, escrow = world.kudos(world.owner_id)
    assert spendable == 14_000 + reward - reward // 2
    assert escrow > reward // 2


def test_a_window_without_a_job_earns_nothing_and_ends(world: World) -> None:
    window(world)
    assert reward_uptime(world.runtime) == 0
    serve(world)
    assert reward_uptime(world.runtime) == 0


def test_a_window_that_is_not_full_earns_nothing(world: World) -> None:
    window(world, minutes=9)
    serve(world)
    assert reward_uptime(world.runtime) == 0


@pytest.mark.parametrize("away", ["maintenance = true", "last_seen_at = now() - interval '10 minutes'"])
def test_an_absence_begins_the_window_anew(world: World, away: str) -> None:
    window(world)
    serve(world)
    world.execute(f"UPDATE workers SET {away}")  # noqa: S608 - from the table above
    assert reward_uptime(world.runtime) == 0
    world.execute("UPDATE workers SET maintenance = false, last_seen_at = now()")
    assert reward_uptime(world.runtime) == 0
    assert world.execute("SELECT uptime_from > now() - interval '1 minute' FROM workers") == [(True,)]


def test_anonymous_requests_are_last_in_line(world: World) -> None:
    world.requester_key = ANONYMOUS_KEY
    anonymous = world.ask().id
    _, world.requester_key = world.account("cy")
    known = world.ask().id
    assert world.execute("SELECT request_id FROM queue_entries ORDER BY sort_key") == [(known,), (anonymous,)]


def test_a_reply_whose_verification_never_ends_costs_nothing_and_earns_nothing(world: World) -> None:
    trust(world)
    asked, _ = world.kudos(world.requester_id)
    _, generation_id = world.leased()
    world.deliver(generation_id)
    world.execute("UPDATE generations SET attempts = 99, next_dispatch_at = now() - interval '1 second'")
    for _ in range(2):
        sweep(world.runtime)
    assert world.state_of("generations", generation_id) == "faulted"
    assert world.kudos(world.owner_id) == (14_000, 0)
    assert world.kudos(world.requester_id) == (asked, 0)
