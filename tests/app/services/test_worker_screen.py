"""Who may run workers, how many, from where, and under what name (wire reference 4.11)."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.capabilities import parse_declaration
from app.domain.errors import (
    BadRequest,
    HordeError,
    ProfaneBridgeAgent,
    ProfaneWorkerName,
    TooManyNewIps,
    TooManySameIps,
    TooManyWorkers,
    TooManyWorkersTrusted,
    UnsafeIp,
    WorkerFlaggedMaintenance,
    WorkerInviteOnly,
)
from app.domain.modes import Mode
from app.services.accounts import Role, set_role
from app.services.modes import set_mode
from app.services.pop import Job, Pop
from config.settings import Settings
from tests.app.services.conftest import DECLARATION, World

HOME = "203.0.113.7"

Come = Callable[..., Job]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Limits small enough to reach."""
    return settings.model_copy(
        update={
            "workers_untrusted": 2,
            "workers_trusted": 4,
            "addresses_per_hour": 3,
            "unsafe_networks": "192.0.2.0/24",
        }
    )


@pytest.fixture
def come(world: World) -> Come:
    """Let a worker of the owner's pop: its name, from where, and what else it declares."""
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 hour'")
    # A process of its own, which remembers nothing.
    pops = Pop(world.runtime, world.online, world.pops._classes, world.queue_info)

    def pop(name: str = "box", address: str = HOME, key: str = "", **changes: Any) -> Job:
        declaration, _ = parse_declaration(DECLARATION | {"name": name} | changes)
        return pops(key or world.owner_key, declaration, None, address)

    return pop


def give(world: World, **columns: object) -> None:
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    world.execute(f"UPDATE users SET {sets} WHERE id = :id", id=world.owner_id, **columns)  # noqa: S608 - our names


def turn_on(world: World, mode: Mode) -> None:
    with world.runtime.database.transaction() as transaction:
        set_mode(transaction, mode, is_on=True)


def refuses(kind: type[HordeError], come: Come, *args: str, **changes: Any) -> None:
    with pytest.raises(kind) as refusal:
        come(*args, **changes)
    assert refusal.type is kind
    assert refusal.value.message


def test_an_untrusted_owner_has_exactly_as_many_workers_online_as_it_may(world: World, come: Come) -> None:
    come("one", "203.0.113.1")
    come("two", "203.0.113.2")
    refuses(TooManyWorkers, come, "three", "203.0.113.3")
    # Those that are here already stay.
    come("two", "203.0.113.2")
    assert world.execute("SELECT count(*) FROM workers WHERE name = 'three'") == [(0,)]


def test_a_worker_that_left_makes_room(world: World, come: Come) -> None:
    come("one")
    come("two")
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 hour' WHERE name = 'one'")
    come("three")
    refuses(TooManyWorkers, come, "one")


def test_a_trusted_owner_has_more_and_an_invitation_more_still(world: World, come: Come) -> None:
    give(world, trusted=True)
    for number in range(4):
        come(f"box {number}")
    refuses(TooManyWorkersTrusted, come, "box 4")
    give(world, worker_invited=5)
    come("box 4")
    refuses(TooManyWorkersTrusted, come, "box 5")


def test_an_address_has_as_many_workers_as_one_owner_may(world: World, come: Come) -> None:
    _, other = world.account("carl")
    come("one")
    come("two")
    refuses(TooManySameIps, come, "three", key=other)
    come("three", "203.0.113.8", key=other)


@pytest.mark.parametrize("addresses", [["2001:db8::1", "2001:db8::2", "2001:db8::3"]])
def test_a_household_is_one_address(world: World, come: Come, addresses: list[str]) -> None:
    _, other = world.account("carl")
    come("one", addresses[0])
    come("two", addresses[1])
    refuses(TooManySameIps, come, "three", addresses[2], key=other)


def test_the_hordes_own_machine_is_no_address_to_share(world: World, come: Come) -> None:
    _, other = world.account("carl")
    for name, key in (("one", ""), ("two", ""), ("three", other), ("four", other)):
        come(name, "127.0.0.1", key=key)


def test_new_workers_come_by_invitation_when_the_horde_says_so(world: World, come: Come) -> None:
    turn_on(world, Mode.INVITE_ONLY)
    # It was known before.
    come("box")
    refuses(WorkerInviteOnly, come, "new box")
    give(world, worker_invited=2)
    come("new box")
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 hour'")
    refuses(WorkerInviteOnly, come, "another box")


def test_a_flagged_owners_workers_get_nothing(world: World, come: Come) -> None:
    give(world, flagged=True)
    refuses(WorkerFlaggedMaintenance, come)


@pytest.mark.parametrize("role", [Role.TRUSTED, Role.VPN])
def test_an_unsafe_network_is_for_those_that_are_known(world: World, come: Come, role: Role) -> None:
    refuses(UnsafeIp, come, "box", "192.0.2.9")
    with world.runtime.database.transaction() as transaction:
        set_role(transaction, world.owner_id, role, held=True)
    come("box", "192.0.2.9")


def test_in_a_raid_nobody_is_told_what_is_unsafe(world: World, come: Come) -> None:
    turn_on(world, Mode.RAID)
    with pytest.raises(UnsafeIp) as refusal:
        come("box", "192.0.2.9")
    assert "network" not in refusal.value.message


def test_an_untrusted_owner_does_not_wander_over_addresses(world: World, come: Come) -> None:
    for number in range(3):
        come("box", f"203.0.113.{number}")
    refuses(TooManyNewIps, come, "box", "203.0.113.200")
    # Where it was, it still is welcome.
    come("box", "203.0.113.2")
    give(world, vpn=True)
    come("box", "203.0.113.201")


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (BadRequest, {"name": "My Colab box"}),
        (BadRequest, {"name": "googlebox"}),
        (ProfaneWorkerName, {"name": "a Shit box"}),
        (ProfaneWorkerName, {"name": "shit_box"}),
        (ProfaneBridgeAgent, {"name": "new", "bridge_agent": "cunt:1:none"}),
    ],
)
def test_a_name_that_cannot_be_shown_is_refused(come: Come, kind: type[HordeError], changes: dict[str, str]) -> None:
    refuses(kind, come, changes["name"], bridge_agent=changes.get("bridge_agent", "unknown:0:unknown"))


@pytest.mark.parametrize("name", ["Scunthorpe", "Shitake", "Box of Dick Turpin"])
def test_a_name_that_only_looks_like_one_is_not(come: Come, name: str) -> None:
    come(name)
