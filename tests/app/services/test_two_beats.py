"""Two beats, or one that sends twice: whatever runs by itself may run beside itself and again (reliability A14)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Barrier
from typing import Any

import pytest
from celery import Celery

from app.domain.task_names import TaskName
from app.services.verify_generation import verify_generation
from config.settings import get_settings
from tests.app.services.conftest import World
from tests.support.services import LocalServices

BEATS = 4


@pytest.fixture
def celery(services: LocalServices, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    """The horde's own tasks, on this world's database."""
    for name, value in services.environment.items():
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    module = import_module("tasks.celery_app")
    module.celery.loader.import_default_modules()
    monkeypatch.setattr(module.runtime, "made", world.runtime)
    yield module.celery
    get_settings.cache_clear()


def ledger(world: World) -> list[tuple[object, ...]]:
    """What was booked, by kind."""
    return world.execute("SELECT kind, count(*), sum(amount) FROM ledger_entries GROUP BY kind ORDER BY kind")


def run_beside_itself(celery: Celery) -> None:
    """Run everything that beat sends, and the settlement that the sweep kicks, each beside itself."""
    names = [TaskName.SETTLE_BATCH.value, *celery.conf.beat_schedule]
    together = Barrier(BEATS)

    def run(task: Any) -> None:
        together.wait(10)
        task()

    with ThreadPoolExecutor(BEATS) as pool:
        for name in names:
            list(pool.map(run, [celery.tasks[name]] * BEATS))


def test_everything_that_runs_by_itself_may_run_twice_at_once_and_again(world: World, celery: Celery) -> None:
    for _ in range(3):
        _, generation_id = world.leased()
        world.deliver(generation_id)
        verify_generation(world.runtime, generation_id)
    world.ask()
    run_beside_itself(celery)
    world.require_sound()
    booked = ledger(world)
    assert ("charge", 3) in [row[:2] for row in booked]
    run_beside_itself(celery)
    world.require_sound()
    assert ledger(world) == booked
