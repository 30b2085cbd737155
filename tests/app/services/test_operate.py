"""What an operator sees of workers and the queue, and changes about a worker."""

from typing import Any

import pytest

from app.domain.errors import WorkerNotFound
from app.domain.worker_profile import WorkerEdit
from app.services.operate import change_worker_named, list_workers, read_queue
from tests.app.services.conftest import World


def workers(world: World, *, everyone: bool = False) -> list[dict[str, Any]]:
    with world.runtime.database.statements() as transaction:
        return list_workers(transaction, online_seconds=300, everyone=everyone)


def change(world: World, name: str, wanted: WorkerEdit) -> dict[str, Any]:
    with world.runtime.database.transaction() as transaction:
        return change_worker_named(transaction, name, wanted)


def queue(world: World) -> list[dict[str, Any]]:
    with world.runtime.database.statements() as transaction:
        return read_queue(transaction, online_seconds=300)


def test_an_online_worker_is_listed_with_its_owner_and_jobs(world: World) -> None:
    world.leased()
    (row,) = workers(world)
    assert (row["owner"], row["jobs"], row["maintenance"]) == (f"bob#{world.owner_id}", 1, False)


def test_a_worker_that_is_offline_is_listed_among_all_alone(world: World) -> None:
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 day'")
    assert workers(world) == []
    assert len(workers(world, everyone=True)) == 1


def test_a_worker_is_put_into_maintenance_and_taken_out(world: World) -> None:
    name = workers(world)[0]["name"]
    begun = change(world, name, WorkerEdit(maintenance=True, maintenance_msg="Too hot."))
    assert (begun["maintenance"], begun["maintenance_message"]) == (True, "Too hot.")
    ended = change(world, name, WorkerEdit(maintenance=False))
    assert (ended["maintenance"], ended["maintenance_message"]) == (False, None)


def test_a_paused_worker_gets_no_jobs(world: World) -> None:
    world.ask()
    change(world, workers(world)[0]["id"], WorkerEdit(paused=True))
    assert world.pop().id is None
    change(world, workers(world)[0]["id"], WorkerEdit(paused=False))
    assert world.pop().id is not None


def test_nobody_is_changed_by_a_name_that_nobody_has(world: World) -> None:
    with pytest.raises(WorkerNotFound):
        change(world, "nobody", WorkerEdit(paused=True))


def test_the_queue_says_what_waits_and_who_could_take_it(world: World) -> None:
    world.ask()
    (row,) = queue(world)
    assert (row["kind"], row["waiting"], row["workers"]) == ("chat", 1, 1)
    assert row["tokens"] > 0
    assert row["oldest_seconds"] >= 0
