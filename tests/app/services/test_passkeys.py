"""Passkeys of services: the new one, the old one for as long as fronts are restarted, and no other."""

import pytest

from app.adapters.database import STATEMENTS
from app.domain.errors import NonServiceForbidden, OnlyServiceAccountProxy
from app.models.account import AccountKind
from app.services.accounts import create_user
from app.services.passkeys import Passkeys, list_passkeys, retire_passkey, rotate_passkey, set_passkey
from app.services.runtime import Runtime

FIRST = "the-first-passkey"


@pytest.fixture
def service(runtime: Runtime) -> int:
    """A service account with its first passkey."""
    with runtime.database.transaction() as transaction:
        made = create_user(transaction, "front", AccountKind.SERVICE)
        set_passkey(transaction, made, FIRST)
    return made


def rotate(runtime: Runtime, service: int, hours: float = 1) -> str:
    with runtime.database.transaction() as transaction:
        return rotate_passkey(transaction, service, hours)[0]


def is_good(runtime: Runtime, passkey: str) -> bool:
    """Whether a process that remembers nothing accepts it."""
    try:
        Passkeys(runtime.database).check(passkey)
    except OnlyServiceAccountProxy:
        return False
    return True


def test_both_passkeys_are_good_until_the_old_one_is_retired(runtime: Runtime, service: int) -> None:
    second = rotate(runtime, service)
    assert is_good(runtime, FIRST)
    assert is_good(runtime, second)
    with runtime.database.transaction() as transaction:
        assert retire_passkey(transaction, service)
        assert not retire_passkey(transaction, service)
    assert not is_good(runtime, FIRST)
    assert is_good(runtime, second)


def test_a_passkey_that_leaked_ends_with_its_rotation(runtime: Runtime, service: int) -> None:
    second = rotate(runtime, service, hours=0)
    assert not is_good(runtime, FIRST)
    assert is_good(runtime, second)


def test_only_the_last_passkey_before_is_good_too(runtime: Runtime, service: int) -> None:
    second = rotate(runtime, service)
    third = rotate(runtime, service)
    assert [is_good(runtime, each) for each in (FIRST, second, third)] == [False, True, True]


def test_a_passkey_that_is_set_is_the_only_one(runtime: Runtime, service: int) -> None:
    second = rotate(runtime, service)
    with runtime.database.transaction() as transaction:
        set_passkey(transaction, service, "a-passkey-of-mine")
    assert [is_good(runtime, each) for each in (FIRST, second, "a-passkey-of-mine")] == [False, False, True]


def test_the_list_says_until_when_an_old_passkey_is_good(runtime: Runtime, service: int) -> None:
    with runtime.database.transaction() as transaction:
        assert list_passkeys(transaction) == [
            {"id": service, "service": f"front#{service}", "old_one_good_until": None}
        ]
        _, until = rotate_passkey(transaction, service, 1)
        assert list_passkeys(transaction)[0]["old_one_good_until"] == until


def test_an_account_without_a_passkey_has_none_to_rotate(runtime: Runtime) -> None:
    with runtime.database.transaction() as transaction:
        ann = create_user(transaction, "ann")
    with pytest.raises(NonServiceForbidden):
        rotate(runtime, ann)


def test_a_process_remembers_both_passkeys_of_an_overlap(runtime: Runtime, service: int) -> None:
    second = rotate(runtime, service)
    process = Passkeys(runtime.database)
    process.check(FIRST)
    process.check(second)
    before = STATEMENTS._value.get()
    for _ in range(10):
        process.check(FIRST)
        process.check(second)
    assert STATEMENTS._value.get() == before
