"""Who may change what about an account (wire reference 2.7)."""

from typing import Any

import pytest

from app.domain.errors import (
    AnonForbiddenUserMod,
    BadRequest,
    HordeError,
    InvalidApiKey,
    NonServiceForbidden,
    NotAdmin,
    NotModerator,
    NotPrivileged,
    NoUserModSelected,
    OnlyServiceAccountProxy,
    ProfaneUserContact,
    ProfaneUserName,
    TooLongUserName,
    UserNotFound,
)
from app.domain.system_accounts import ANONYMOUS_ID, ANONYMOUS_KEY
from app.services.accounts import Role, set_role
from app.services.edit_user import EditUser
from app.services.passkeys import Passkeys
from app.services.shared_keys import SharedKeys
from tests.app.services.conftest import World

BY_SELF = {"username": "Ann Lee", "contact": "ann@example.org", "public_workers": True}
BY_MODERATOR = {
    "concurrency": 100, "worker_invited": 5, "trusted": True, "flagged": True, "customizer": True, "vpn": True,
    "education": True, "special": True, "service": True, "admin_comment": "Knows\nwhat she does.",
}  # fmt: skip


@pytest.fixture
def edit(world: World) -> EditUser:
    return EditUser(world.runtime)


@pytest.fixture
def moderator(world: World) -> str:
    user_id, key = world.account("moderator")
    with world.runtime.database.transaction() as transaction:
        set_role(transaction, user_id, Role.MODERATOR, held=True)
    return key


@pytest.fixture
def admin(world: World) -> str:
    user_id, key = world.account("admin")
    world.execute("UPDATE users SET kind = 'admin' WHERE id = :id", id=user_id)
    return key


def kept(world: World, column: str) -> object:
    return world.execute(f"SELECT {column} FROM users WHERE id = :id", id=world.requester_id)[0][0]  # noqa: S608


@pytest.mark.parametrize("key", list(BY_SELF))
def test_an_account_changes_what_is_its_own(world: World, edit: EditUser, key: str) -> None:
    assert edit(world.requester_key, world.requester_id, {key: BY_SELF[key]}) == {key: BY_SELF[key]}
    assert kept(world, key) == BY_SELF[key]


@pytest.mark.parametrize("key", list(BY_MODERATOR))
def test_a_moderator_changes_what_the_account_may_not(world: World, edit: EditUser, moderator: str, key: str) -> None:
    with pytest.raises(NotModerator):
        edit(world.requester_key, world.requester_id, {key: BY_MODERATOR[key]})
    assert edit(moderator, world.requester_id, {key: BY_MODERATOR[key]}) == {key: BY_MODERATOR[key]}
    if key == "service":
        assert kept(world, "kind") == "service"
    else:
        assert kept(world, key) == BY_MODERATOR[key]


def test_an_admin_alone_makes_moderators(world: World, edit: EditUser, moderator: str, admin: str) -> None:
    with pytest.raises(NotAdmin):
        edit(moderator, world.requester_id, {"moderator": True})
    assert edit(admin, world.requester_id, {"moderator": True, "trusted": True}) == {
        "moderator": True,
        "trusted": True,
    }
    # Now the account may what moderators may.
    edit(world.requester_key, world.owner_id, {"trusted": True})


def test_many_changes_are_made_together_or_not_at_all(world: World, edit: EditUser) -> None:
    with pytest.raises(NotModerator):
        edit(world.requester_key, world.requester_id, BY_SELF | {"trusted": True})
    assert kept(world, "username") == "ann"
    assert edit(world.requester_key, world.requester_id, BY_SELF) == BY_SELF


def test_a_reset_clears_an_account_of_suspicions(world: World, edit: EditUser, moderator: str) -> None:
    world.execute(
        "INSERT INTO suspicions (user_id, reason) SELECT :id, 'corrupt_prompt' FROM generate_series(1, 6)",
        id=world.requester_id,
    )
    with pytest.raises(NotModerator):
        edit(world.requester_key, world.requester_id, {"reset_suspicion": True})
    assert edit(moderator, world.requester_id, {"reset_suspicion": True}) == {"new_suspicion": 0}
    assert world.execute("SELECT count(*) FROM suspicions") == [(0,)]


def test_a_service_makes_its_passkey_and_loses_it_with_the_role(world: World, edit: EditUser, moderator: str) -> None:
    with pytest.raises(NonServiceForbidden):
        edit(world.requester_key, world.requester_id, {"generate_proxy_passkey": True})
    edit(moderator, world.requester_id, {"service": True})
    passkey = edit(world.requester_key, world.requester_id, {"generate_proxy_passkey": True})["proxy_passkey"]
    Passkeys(world.runtime.database).check(passkey)
    edit(moderator, world.requester_id, {"service": False})
    with pytest.raises(OnlyServiceAccountProxy):
        Passkeys(world.runtime.database).check(passkey)


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({}, NoUserModSelected),
        ({"no_such": 1, "trusted": None}, NoUserModSelected),
        ({"username": "x" * 31}, TooLongUserName),
        ({"username": "ab"}, BadRequest),
        ({"username": "a#b"}, BadRequest),
        ({"username": "an\x00n"}, BadRequest),
        ({"username": 5}, BadRequest),
        ({"username": "a shit name"}, ProfaneUserName),
        ({"contact": "shit happens"}, ProfaneUserContact),
        ({"contact": "x" * 501}, BadRequest),
        ({"public_workers": "true"}, BadRequest),
        ({"public_workers": 1}, BadRequest),
        ({"concurrency": 501}, BadRequest),
        ({"concurrency": -1}, BadRequest),
        ({"concurrency": True}, BadRequest),
        ({"concurrency": 1.5}, BadRequest),
        ({"usage_multiplier": 0.1}, BadRequest),
        ({"kudos": 1000}, BadRequest),
        ({"undelete": True}, BadRequest),
    ],
)
def test_what_cannot_be_set_is_refused_by_name(
    world: World, edit: EditUser, admin: str, body: dict[str, Any], refusal: type[HordeError]
) -> None:
    with pytest.raises(refusal) as refused:
        edit(admin, world.requester_id, body)
    assert refused.type is refusal
    assert all(key in refused.value.message for key in body if refusal is not NoUserModSelected)


def test_nobody_changes_another_account(world: World, edit: EditUser) -> None:
    with pytest.raises(NotPrivileged):
        edit(world.requester_key, world.owner_id, {"contact": "me"})


def test_a_shared_key_changes_nothing(world: World, edit: EditUser) -> None:
    from app.domain.shared_key_terms import parse_shared_key

    shared = SharedKeys(world.runtime).create(world.requester_key, parse_shared_key({"name": "friends"}))["id"]
    with pytest.raises(NotPrivileged):
        edit(shared, world.requester_id, {"contact": "me"})


@pytest.mark.parametrize("own", [True, False])
def test_the_anonymous_account_stays_as_it_is(world: World, edit: EditUser, admin: str, own: bool) -> None:
    key, user_id = (ANONYMOUS_KEY, world.requester_id) if own else (admin, ANONYMOUS_ID)
    with pytest.raises(AnonForbiddenUserMod):
        edit(key, user_id, {"contact": "me"})


def test_an_account_that_nobody_has_is_not_found(edit: EditUser, admin: str) -> None:
    for user_id in (1, 2, 999_999_999):
        with pytest.raises(UserNotFound):
            edit(admin, user_id, {"contact": "me"})


def test_a_wrong_key_is_refused(world: World, edit: EditUser) -> None:
    with pytest.raises(InvalidApiKey):
        edit("no-such-key-in-the-horde", world.requester_id, {"contact": "me"})
