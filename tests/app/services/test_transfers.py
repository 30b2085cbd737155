"""Transfers: refused or done once, and nothing is made or lost."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from app.domain.errors import HordeError, KudosTransferNotEnough, KudosUpfront
from app.domain.shared_key_terms import parse_shared_key
from app.domain.system_accounts import ANONYMOUS_KEY
from app.services.kudos import fold_balances
from app.services.shared_keys import SharedKeys
from app.services.transfers import Gift, TransferKudos, transfer
from tests.app.services.conftest import World
from tests.support.services import wait_until

ALL = 1000
"""What the requester can give: all that it was granted, above its floor."""


def give(
    world: World, amount: object = ALL, *, to: str | None = None, key: str | None = None, once: str | None = None
) -> float:
    target = to or f"bob#{world.owner_id}"
    return TransferKudos(world.runtime)(key or world.requester_key, target, amount, once)


def code_of(world: World, **changes: object) -> str:
    with pytest.raises(HordeError) as refused:
        give(world, **changes)  # type: ignore[arg-type]
    return refused.value.rc


def test_a_transfer_moves_kudos_from_one_account_to_the_other(world: World) -> None:
    assert give(world, 12.5) == 12.5
    assert world.kudos(world.requester_id) == (1_001_500, 0)
    assert world.kudos(world.owner_id) == (26_500, 0)


def test_the_floor_is_not_an_accounts_own_to_give(world: World) -> None:
    assert code_of(world, amount=ALL + 0.01) == "KudosTransferNotEnough"
    assert give(world, ALL) == ALL
    assert world.kudos(world.requester_id) == (14_000, 0)
    fold_balances(world.runtime)
    assert world.kudos(world.requester_id) == (14_000, 0)


def test_of_two_transfers_of_everything_at_once_one_is_done(world: World) -> None:
    third, _ = world.account("cy")

    def one(target: str) -> str:
        try:
            return str(give(world, to=target))
        except HordeError as refusal:
            return refusal.rc

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(one, [f"bob#{world.owner_id}", f"cy#{third}"] * 4))
    assert sorted(set(answers)) == ["1000.0", "KudosTransferNotEnough"]
    assert answers.count("1000.0") == 1
    assert world.kudos(world.owner_id)[0] + world.kudos(third)[0] == 28_000 + ALL * 1000


def test_transfers_both_ways_at_once_do_not_wait_for_each_other_for_ever(world: World) -> None:
    world.execute(
        "INSERT INTO ledger_entries (business_key, kind, user_id, amount)"
        " VALUES ('g', 'grant', :id, 500000), ('g', 'issue', 1, -500000)",
        id=world.owner_id,
    )

    def one(there: bool) -> str:
        try:
            if there:
                return str(give(world, 1))
            return str(give(world, 1, to=f"ann#{world.requester_id}", key=world.owner_key))
        except HordeError as refusal:
            return refusal.rc

    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(one, [True, False] * 6))
    assert answers == {"1.0", "TooFastKudosTransfers"}


def test_the_same_idempotency_key_gives_once(world: World) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: give(world, 10, once="k"), range(4)))
    assert answers == [10.0] * 4
    assert world.kudos(world.owner_id) == (24_000, 0)


def test_a_repeat_is_answered_although_nothing_is_left_to_give(world: World) -> None:
    assert give(world, once="k") == ALL
    assert give(world, once="k") == ALL


def test_the_same_idempotency_key_for_another_transfer_is_refused(world: World) -> None:
    give(world, 10, once="k")
    assert code_of(world, amount=11, once="k") == "IdempotencyKeyConflict"


def test_the_same_idempotency_key_of_another_account_is_another_transfer(world: World) -> None:
    third, key = world.account("cy", grants=50_000)
    give(world, 10, once="k")
    assert give(world, 10, key=key, once="k") == 10
    assert world.kudos(third) == (54_000, 0)


def test_kudos_do_not_go_back_within_a_minute(world: World) -> None:
    give(world, 10)
    assert code_of(world, amount=1, to=f"ann#{world.requester_id}", key=world.owner_key) == "TooFastKudosTransfers"
    world.execute("UPDATE kudos_transfers SET created_at = now() - interval '61 seconds'")
    assert give(world, 1, to=f"ann#{world.requester_id}", key=world.owner_key) == 1


def test_the_targets_and_keys_that_cannot_be(world: World) -> None:
    assert code_of(world, to=f"ann#{world.requester_id}") == "KudosTransferToSelf"
    assert code_of(world, to="Anonymous#0") == "KudosTransferToAnon"
    assert code_of(world, key=ANONYMOUS_KEY) == "KudosTransferFromAnon"
    assert code_of(world, to="Horde#1") == "InvalidTargetUsername"
    assert code_of(world, to="cy#999999") == "InvalidTargetUsername"
    assert code_of(world, key="no-such-key") == "InvalidAPIKey"
    assert code_of(world, amount=-5) == "NegativeKudosTransfer"
    assert code_of(world, amount=0.001) == "InvalidKudosTransferAmount"


@pytest.mark.parametrize(
    ("who", "role", "code"),
    [
        ("requester", "flagged", "SourceAccountFlagged"),
        ("owner", "flagged", "TargetAccountFlagged"),
        ("requester", "education", "EducationCannotSendKudos"),
        ("requester", "deleted", "DeletedUser"),
        ("owner", "deleted", "DeletedUser"),
    ],
)
def test_a_role_can_forbid_a_transfer(world: World, who: str, role: str, code: str) -> None:
    user_id = getattr(world, f"{who}_id")
    world.execute(f"UPDATE users SET {role} = true WHERE id = :id", id=user_id)  # noqa: S608 - a column of ours
    assert code_of(world, amount=1) == code


def test_kudos_held_for_a_request_cannot_be_given(world: World) -> None:
    world.ask(max_tokens=1024)
    assert code_of(world) == "KudosTransferNotEnough"


def test_a_key_gives_no_more_than_its_limit(world: World) -> None:
    world.execute("UPDATE api_keys SET kudos_limit = 100000 WHERE user_id = :id", id=world.requester_id)
    assert give(world, 60) == 60
    assert code_of(world, amount=41) == "KudosTransferNotEnough"
    assert give(world, 40) == 40


def test_kudos_for_a_shared_key_go_to_its_owner_and_onto_the_key(world: World) -> None:
    keys = SharedKeys(world.runtime)
    shared = str(keys.create(world.owner_key, parse_shared_key({"kudos": 5}))["id"])
    assert give(world, 20, to=shared) == 20
    assert world.kudos(world.owner_id) == (34_000, 0)
    assert keys.read(UUID(shared))["kudos"] == 25
    assert code_of(world, key=shared) == "InvalidAPIKey"
    world.execute("UPDATE api_keys SET expires_at = now() WHERE shared_id IS NOT NULL")
    assert code_of(world, to=shared) == "SharedKeyExpired"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    amount=st.one_of(
        st.integers(-(10**20), 10**20), st.floats(allow_nan=True), st.decimals(0, 2000, places=2).map(float)
    )
)
def test_whatever_is_asked_the_sum_stays_the_same(world: World, amount: float) -> None:
    before = world.kudos(world.requester_id)[0] + world.kudos(world.owner_id)[0]
    try:
        assert 0 < give(world, amount) == amount
    except HordeError as refusal:
        event(refusal.rc)
    assert world.kudos(world.requester_id)[0] + world.kudos(world.owner_id)[0] == before
    assert world.kudos(world.requester_id)[0] >= 14_000


def waits_for_a_lock(world: World) -> bool:
    return world.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == [(1,)]


def test_kudos_that_are_being_given_cannot_be_held_meanwhile(world: World) -> None:
    gift = Gift(source_id=world.requester_id, target=world.owner_id, amount=ALL * 1000)
    with ThreadPoolExecutor(1) as pool:
        with world.runtime.database.transaction() as transaction:
            transfer(transaction, gift)
            asking = pool.submit(world.ask, max_tokens=1024)
            wait_until(lambda: waits_for_a_lock(world), 10, "the submit does not wait for the transfer")
        with pytest.raises(KudosUpfront):
            asking.result(10)


def test_a_transfer_waits_for_another_of_the_same_account(world: World) -> None:
    third, _ = world.account("cy")
    gift = Gift(source_id=world.requester_id, target=third, amount=ALL * 1000)
    with ThreadPoolExecutor(1) as pool:
        with world.runtime.database.transaction() as transaction:
            transfer(transaction, gift)
            giving = pool.submit(give, world)
            wait_until(lambda: waits_for_a_lock(world), 10, "the transfer does not wait for the other")
        with pytest.raises(KudosTransferNotEnough):
            giving.result(10)
