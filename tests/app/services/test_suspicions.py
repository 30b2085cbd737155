"""Suspicions: what brings them, what they keep from, and how they end (wire reference 4.7, 4.11 and 4.12)."""

from dataclasses import replace

import pytest
from redis import Redis

from app.domain.errors import (
    CorruptPrompt,
    FaultWhenKudosReceiving,
    FaultWhenKudosSending,
    HordeError,
    MaintenanceMode,
    RegistrationClosed,
    TimeoutIp,
)
from app.domain.modes import Mode
from app.domain.suspicion import SUSPICIOUS_FROM, Suspected
from app.domain.system_accounts import ANONYMOUS_KEY
from app.services.aborts import ABORTS_IN_A_RAID
from app.services.countermeasures import Countermeasures, Timeouts
from app.services.escrow import review_escrow
from app.services.kudos import fold_balances
from app.services.modes import Modes, set_mode
from app.services.registration import Register
from app.services.settle import settle_batch
from app.services.suspicions import forget_suspicions, suspect, suspect_speeds
from app.services.transfers import TransferKudos
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World

HOME = "203.0.113.7"


def suspected(world: World, user_id: int, times: int = SUSPICIOUS_FROM) -> None:
    for _ in range(times):
        with world.runtime.database.transaction() as transaction:
            suspect(transaction, user_id, Suspected.CORRUPT_PROMPT)


def reasons(world: World) -> list[tuple[object, ...]]:
    return world.execute("SELECT user_id, reason, worker_id IS NOT NULL FROM suspicions ORDER BY id")


def turn_on(world: World, mode: Mode) -> None:
    with world.runtime.database.transaction() as transaction:
        set_mode(transaction, mode, is_on=True)


@pytest.mark.parametrize(("who", "refusal"), [("requester", FaultWhenKudosSending), ("owner", FaultWhenKudosReceiving)])
def test_a_suspicious_account_moves_no_kudos(world: World, who: str, refusal: type[HordeError]) -> None:
    user_id = world.requester_id if who == "requester" else world.owner_id
    give = TransferKudos(world.runtime)
    suspected(world, user_id, SUSPICIOUS_FROM - 1)
    give(world.requester_key, f"bob#{world.owner_id}", 5, None)
    suspected(world, user_id, 1)
    with pytest.raises(refusal):
        give(world.requester_key, f"bob#{world.owner_id}", 5, None)
    with world.runtime.database.transaction() as transaction:
        forget_suspicions(transaction, user_id)
    give(world.requester_key, f"bob#{world.owner_id}", 5, None)


@pytest.mark.parametrize("suspicions", [0, SUSPICIOUS_FROM])
def test_a_suspicious_account_is_not_trusted_by_itself(world: World, suspicions: int) -> None:
    world.execute("UPDATE users SET created_at = now() - interval '30 days' WHERE id = :id", id=world.owner_id)
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    settle_batch(world.runtime)
    fold_balances(world.runtime)
    suspected(world, world.owner_id, suspicions)
    settings = world.runtime.settings.model_copy(update={"kudos_trust_threshold": 0.05})
    review_escrow(replace(world.runtime, settings=settings))
    trusted = world.execute("SELECT trusted FROM users WHERE id = :id", id=world.owner_id)
    assert trusted == [(not suspicions,)]


def measured(world: World, speed: float, samples: int = 20) -> None:
    world.execute(
        "INSERT INTO worker_speeds (worker_id, model, tokens_per_second, samples, measured_at) "
        "SELECT id, 'some-70B', :speed, :samples, now() FROM workers WHERE name = 'box'",
        speed=speed,
        samples=samples,
    )


def test_a_speed_that_nobody_can_believe_is_noted_once_an_hour(world: World) -> None:
    measured(world, 45.0)
    assert [suspect_speeds(world.runtime) for _ in range(2)] == [1, 0]
    assert reasons(world) == [(world.owner_id, "unreasonably_fast", True)]
    world.execute("UPDATE suspicions SET created_at = now() - interval '61 minutes'")
    assert suspect_speeds(world.runtime) == 1


@pytest.mark.parametrize(("speed", "samples", "trusted"), [(25.0, 20, False), (45.0, 4, False), (45.0, 20, True)])
def test_slow_few_or_trusted_is_not_suspected(world: World, speed: float, samples: int, trusted: bool) -> None:
    world.execute("UPDATE users SET trusted = :trusted WHERE id = :id", trusted=trusted, id=world.owner_id)
    measured(world, speed, samples)
    assert suspect_speeds(world.runtime) == 0


def test_a_worker_with_too_many_suspicions_is_paused_and_gets_no_prompt(world: World) -> None:
    worker_id = world.pop().worker_id
    for number in range(SUSPICIOUS_FROM):
        assert world.execute("SELECT paused FROM workers WHERE id = :id", id=worker_id) == [(False,)], number
        with world.runtime.database.transaction() as transaction:
            suspect(transaction, world.owner_id, Suspected.UNREASONABLY_FAST, worker_id)
    assert world.execute("SELECT paused FROM workers WHERE id = :id", id=worker_id) == [(True,)]


def fail(world: World, times: int) -> None:
    for _ in range(times):
        world.execute("UPDATE users SET trusted = true WHERE id = :id", id=world.owner_id)
        _, generation_id = world.leased(max_tokens=16)
        world.replies.fault(world.owner_key, generation_id, "out of memory")
        world.execute("UPDATE workers SET failed_at = NULL")


def test_in_a_raid_fewer_aborts_are_suspicious_and_none_is_maintenance(world: World) -> None:
    world.enrich()
    turn_on(world, Mode.RAID)
    fail(world, ABORTS_IN_A_RAID)
    assert reasons(world) == []
    fail(world, 2)
    assert reasons(world) == [(world.owner_id, "too_many_aborts", True)]
    assert world.execute("SELECT maintenance FROM workers") == [(False,)]


@pytest.fixture
def countermeasures(world: World) -> Countermeasures:
    return Countermeasures(world.runtime, Modes(world.runtime), Timeouts(world.runtime))


def refuse_prompt(countermeasures: Countermeasures, key: str, address: str = HOME) -> None:
    with pytest.raises(CorruptPrompt), countermeasures.screened(key, address):
        raise CorruptPrompt("That prompt is refused.")


def test_an_address_whose_prompt_was_refused_is_told_how_long_it_is_kept_out(
    world: World, countermeasures: Countermeasures
) -> None:
    refuse_prompt(countermeasures, world.requester_key)
    with pytest.raises(TimeoutIp) as refusal, countermeasures.screened(world.owner_key, HOME):
        pass
    assert 55 <= (refusal.value.retry_after_seconds or 0) <= 60
    with countermeasures.screened(world.owner_key, "203.0.113.8"):
        pass
    assert reasons(world) == [(world.requester_id, "corrupt_prompt", False)]


def test_another_process_keeps_it_out_too_and_lets_it_in_again(
    world: World, countermeasures: Countermeasures, redis: Redis
) -> None:
    refuse_prompt(countermeasures, world.requester_key)
    with pytest.raises(TimeoutIp):
        Timeouts(world.runtime).check(HOME)
    redis.zadd("horde:timeouts", {HOME: 1.0})
    Timeouts(world.runtime).check(HOME)


def test_who_does_it_again_is_kept_out_longer(world: World, countermeasures: Countermeasures, redis: Redis) -> None:
    refuse_prompt(countermeasures, world.requester_key)
    redis.delete("horde:timeouts")
    countermeasures = Countermeasures(world.runtime, Modes(world.runtime), Timeouts(world.runtime))
    refuse_prompt(countermeasures, world.requester_key)
    with pytest.raises(TimeoutIp) as refusal:
        Timeouts(world.runtime).check(HOME)
    assert 175 <= (refusal.value.retry_after_seconds or 0) <= 180


@pytest.mark.parametrize("key", [ANONYMOUS_KEY, "no-such-key"])
def test_nobody_is_suspected_for_a_prompt_without_an_account(
    world: World, countermeasures: Countermeasures, key: str
) -> None:
    refuse_prompt(countermeasures, key)
    assert reasons(world) == []


def test_a_refused_prompt_of_a_banned_account_is_refused_and_no_suspicion(
    world: World, countermeasures: Countermeasures
) -> None:
    world.execute("INSERT INTO bans (user_id) VALUES (:id)", id=world.requester_id)
    refuse_prompt(countermeasures, world.requester_key)
    assert reasons(world) == []


def test_nothing_is_taken_in_maintenance(world: World, countermeasures: Countermeasures) -> None:
    with countermeasures.screened(world.requester_key, HOME):
        pass
    turn_on(world, Mode.MAINTENANCE)
    later = Countermeasures(world.runtime, Modes(world.runtime), Timeouts(world.runtime))
    with pytest.raises(MaintenanceMode), later.screened(world.requester_key, HOME):
        pass


def test_nobody_registers_in_a_raid(world: World) -> None:
    assert Register(world.runtime)("Newcomer").api_key
    turn_on(world, Mode.RAID)
    with pytest.raises(RegistrationClosed):
        Register(world.runtime)("Raider")
