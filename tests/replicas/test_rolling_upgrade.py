"""Every process is replaced, one after the other, under load, and nobody who asks behind nginx notices."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import as_admin, url_of
from tests.support.earlier import before_newest_migration, check_out
from tests.support.horde import ROOT
from tests.support.replica_load import Clients, Load, Outcomes
from tests.support.replicas import NGINX, RENEWED, ReplicatedHorde, kind_of
from tests.support.services import LocalServices

pytestmark = [pytest.mark.slow, pytest.mark.skipif(NGINX is None, reason="this machine has no nginx")]
UPGRADED = "horde_upgraded"


@pytest.fixture
def earlier(services: LocalServices, tmp_path: Path) -> Iterator[ReplicatedHorde]:
    """A horde on the code and the tables from before the newest migration."""
    commit = before_newest_migration()
    if commit is None:
        pytest.skip("this checkout has no history")
    as_admin(services, f"CREATE DATABASE {UPGRADED}")
    horde = ReplicatedHorde(services, url_of(services, UPGRADED), tmp_path)
    horde.checkout = check_out(commit, tmp_path / "earlier")
    try:
        horde.run("horde", "db", "upgrade")
        horde.start_all()
        yield horde
    finally:
        horde.close()
        as_admin(services, f"DROP DATABASE {UPGRADED} WITH (FORCE)")


@pytest.mark.timeout(900)
def test_a_restart_of_each_process_in_turn_fails_no_completion(replicated: ReplicatedHorde) -> None:
    def renew_all() -> None:
        for name in RENEWED:
            replicated.renew(name)

    nobody_noticed(asyncio.run(asked_meanwhile(replicated, renew_all)))
    replicated.require_sound(60)


@pytest.mark.timeout(900)
def test_an_upgrade_from_before_the_newest_migration_fails_no_completion(earlier: ReplicatedHorde) -> None:
    # Fronts from before decision 0082 do, for as long as they drain, so that they are taken out of nginx first.
    sends_newcomers_away = "shut" not in (earlier.checkout / "front" / "serving.py").read_text()

    def upgrade() -> None:
        earlier.checkout = ROOT
        earlier.run("horde", "db", "upgrade")
        for name in RENEWED:
            if kind_of(name) == "front" and sends_newcomers_away:
                earlier.give_no_more_to(name)
                earlier.renew(name)
                earlier.give_no_more_to()
            else:
                earlier.renew(name)

    nobody_noticed(asyncio.run(asked_meanwhile(earlier, upgrade)))
    earlier.require_sound(60)


async def asked_meanwhile(horde: ReplicatedHorde, happens: Callable[[], None]) -> Outcomes:
    """What became of the completions that were asked for while something happened."""
    clients = Clients(horde, Load())
    async with clients.asking():
        await asyncio.to_thread(happens)
    return clients.outcomes


def nobody_noticed(outcomes: Outcomes) -> None:
    """Require that every completion was delivered at the first asking."""
    assert (outcomes.failed, outcomes.cut, outcomes.repeated) == ([], [], [])
    assert all(outcomes.counts[kind] > 20 for kind in ("plain", "stream", "text"))
