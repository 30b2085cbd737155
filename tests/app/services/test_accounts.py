"""Accounts as clients read them, registration, keys that end, and what a role changes."""

from datetime import UTC, datetime, timedelta

import pytest

from app.domain.errors import BadRequest, DeletedUser, InvalidApiKey, UserNotFound
from app.services import accounts
from app.services.kudos import fold_balances
from app.services.registration import Register
from app.services.settle import settle_batch
from app.services.user_profile import ReadUser
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World


def test_a_registered_account_stands_at_its_floor(world: World) -> None:
    made = Register(world.runtime)("  Ann   Lee ")
    found = ReadUser(world.runtime).by_key(made.api_key)
    assert made.alias == found["username"] == f"Ann Lee#{found['id']}"
    assert found["kudos"] == 14.0
    assert len(made.api_key) == 22


@pytest.mark.parametrize("name", ["ab", "x" * 31, "Ann#1", "a\x00b", "  \n "])
def test_a_name_that_cannot_be_used_makes_no_account(world: World, name: str) -> None:
    before = world.execute("SELECT count(*) FROM users")
    with pytest.raises(BadRequest):
        Register(world.runtime)(name)
    assert world.execute("SELECT count(*) FROM users") == before


def test_an_account_shows_what_it_asked_and_served(world: World) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    settle_batch(world.runtime)
    fold_balances(world.runtime)
    requester = ReadUser(world.runtime).by_key(world.requester_key)
    owner = ReadUser(world.runtime).by_key(world.owner_key)
    assert requester["records"]["usage"]["tokens"] == owner["records"]["contribution"]["tokens"] == 20
    assert requester["records"]["request"]["text"] == owner["records"]["fulfillment"]["text"] == 1
    assert requester["kudos_details"]["admin"] == 1000.0
    assert requester["kudos"] == pytest.approx(sum(requester["kudos_details"].values()))
    assert owner["worker_count"] == len(owner["worker_ids"]) == 1
    assert owner["evaluating_kudos"] > 0


def test_what_is_private_is_for_the_account_and_for_moderators(world: World) -> None:
    read = ReadUser(world.runtime)
    third, key = world.account("cy")
    assert "sharedkey_ids" not in read.by_id(world.owner_id, None)
    assert "sharedkey_ids" not in read.by_id(world.owner_id, key)
    assert "sharedkey_ids" in read.by_id(world.owner_id, world.owner_key)
    with world.runtime.database.transaction() as transaction:
        accounts.set_role(transaction, third, accounts.Role.MODERATOR, held=True)
    assert "sharedkey_ids" in read.by_id(world.owner_id, key)


def test_the_open_requests_of_an_account_are_listed_to_itself(world: World) -> None:
    request_id = world.ask().id
    listed = ReadUser(world.runtime).by_key(world.requester_key)["active_generations"]
    assert listed["text"] == [str(request_id)]


def test_accounts_of_the_system_are_not_shown(world: World) -> None:
    with pytest.raises(UserNotFound):
        ReadUser(world.runtime).by_id(1, None)


def test_a_deleted_account_asks_nothing_and_serves_nothing(world: World) -> None:
    with world.runtime.database.transaction() as transaction:
        accounts.set_role(transaction, world.requester_id, accounts.Role.DELETED, held=True)
        accounts.set_role(transaction, world.owner_id, accounts.Role.DELETED, held=True)
    with pytest.raises(DeletedUser):
        world.ask()
    with pytest.raises(InvalidApiKey):
        world.pop()


def test_an_account_has_several_keys_each_with_its_own_end(world: World) -> None:
    with world.runtime.database.transaction() as transaction:
        _, lasting = accounts.create_key(transaction, world.requester_id, "lasting")
        key_id, revoked = accounts.create_key(transaction, world.requester_id, "revoked")
        past = datetime.now(UTC) - timedelta(seconds=1)
        _, expired = accounts.create_key(transaction, world.requester_id, "expired", expires_at=past)
        assert accounts.revoke_key(transaction, key_id)
        assert not accounts.revoke_key(transaction, key_id)
    read = ReadUser(world.runtime)
    assert read.by_key(lasting)["id"] == world.requester_id
    for key in (revoked, expired):
        with pytest.raises(UserNotFound):
            read.by_key(key)


def test_a_key_is_stored_as_its_digest_alone(world: World) -> None:
    stored = world.execute("SELECT key_sha256 FROM api_keys WHERE user_id = :id", id=world.requester_id)
    assert stored == [(accounts.digest(world.requester_key),)]
    dump = world.execute("SELECT k::text || u::text FROM api_keys k JOIN users u ON u.id = k.user_id")
    assert not any(world.requester_key in str(row) for row in dump)
