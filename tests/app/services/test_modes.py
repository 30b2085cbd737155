"""The horde's modes: who sees them, who sets them, and how soon they are in force."""

import pytest

from app.domain.errors import InvalidApiKey, NoHordeModSelected, NotModerator
from app.domain.modes import Mode
from app.services.accounts import Role, set_role
from app.services.modes import Modes
from tests.app.services.conftest import World


@pytest.fixture
def modes(world: World) -> Modes:
    return Modes(world.runtime)


@pytest.fixture
def moderator_key(world: World) -> str:
    user_id, key = world.account("moderator")
    with world.runtime.database.transaction() as transaction:
        set_role(transaction, user_id, Role.MODERATOR, held=True)
    return key


def test_every_mode_is_off_until_it_is_set(modes: Modes) -> None:
    assert modes.read(None) == {"maintenance_mode": False, "invite_only_mode": False}


def test_raid_mode_is_shown_to_moderators_alone(world: World, modes: Modes, moderator_key: str) -> None:
    modes.change(moderator_key, {Mode.RAID: True})
    assert "raid_mode" not in modes.read(None)
    assert "raid_mode" not in modes.read(world.requester_key)
    assert modes.read(moderator_key)["raid_mode"] is True


def test_a_mode_that_is_set_is_in_force_at_once_in_the_same_process(
    world: World, modes: Modes, moderator_key: str
) -> None:
    with world.runtime.database.statements() as transaction:
        assert not modes.is_on(transaction, Mode.MAINTENANCE)
        assert modes.change(moderator_key, {Mode.MAINTENANCE: True}) == {"maintenance_mode": True}
        assert modes.is_on(transaction, Mode.MAINTENANCE)
        modes.change(moderator_key, {Mode.MAINTENANCE: False})
        assert not modes.is_on(transaction, Mode.MAINTENANCE)


def test_only_a_moderator_sets_modes(world: World, modes: Modes) -> None:
    with pytest.raises(NotModerator):
        modes.change(world.requester_key, {Mode.RAID: True})
    with pytest.raises(InvalidApiKey):
        modes.change("no such key", {Mode.RAID: True})


def test_a_change_that_names_no_mode_is_refused(modes: Modes, moderator_key: str) -> None:
    with pytest.raises(NoHordeModSelected, match="maintenance_mode"):
        modes.change(moderator_key, {})
