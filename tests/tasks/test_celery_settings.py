"""Celery's settings and its registry: what keeps messages from being lost is locked here."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from celery import Celery

from app.domain.task_names import Queue, TaskName
from config.settings import get_settings
from tests.support.services import LocalServices


@pytest.fixture(scope="module")
def celery_app(services: LocalServices) -> Celery:
    """The Celery app as its processes build it."""
    patch = pytest.MonkeyPatch()
    for name, value in services.environment.items():
        patch.setenv(name, value)
    get_settings.cache_clear()
    app: Celery = import_module("tasks.celery_app").celery
    app.loader.import_default_modules()
    app.finalize()
    patch.undo()
    return app


@pytest.fixture(scope="module")
def tasks(celery_app: Celery) -> dict[str, object]:
    """The horde's own tasks by name."""
    return {name: task for name, task in celery_app.tasks.items() if not name.startswith("celery.")}


def test_the_registry_and_the_names_agree(tasks: dict[str, object]) -> None:
    assert set(tasks) == {task.value for task in TaskName}


def test_every_task_takes_ids_only(tasks: dict[str, object]) -> None:
    for task in tasks.values():
        for parameter in inspect.signature(task.run).parameters.values():  # type: ignore[attr-defined]
            assert parameter.annotation in {str, "str"}
            assert parameter.name.endswith("_id")


def test_every_task_caps_its_retries(tasks: dict[str, object]) -> None:
    assert all(task.max_retries <= 3 for task in tasks.values())  # type: ignore[attr-defined]


def test_every_task_has_a_queue_that_a_procfile_process_reads(celery_app: Celery) -> None:
    read = {
        queue
        for line in Path("Procfile").read_text().splitlines()
        if (found := re.search(r"--queues (\S+)", line))
        for queue in found[1].split(",")
    }
    assert {celery_app.conf.task_routes[task.value]["queue"] for task in TaskName} <= read
    assert {queue.value for queue in Queue} == read


def test_messages_survive_a_process_that_dies(celery_app: Celery) -> None:
    conf = celery_app.conf
    assert (conf.task_acks_late, conf.task_retry_on_worker_lost, conf.task_reject_on_worker_lost) == (True, True, False)
    assert conf.worker_cancel_long_running_tasks_on_connection_loss is False


def test_no_task_runs_twice_by_the_visibility_time_out(celery_app: Celery) -> None:
    visibility = celery_app.conf.broker_transport_options["visibility_timeout"]
    assert visibility >= max(300, 2 * celery_app.conf.task_time_limit)
    assert celery_app.conf.task_soft_time_limit < celery_app.conf.task_time_limit


def test_a_frozen_broker_raises_in_a_publisher(celery_app: Celery) -> None:
    options = celery_app.conf.broker_transport_options
    assert 1 < options["socket_timeout"] <= 5
    assert options["socket_connect_timeout"] <= 5
    assert celery_app.conf.task_publish_retry_policy["max_retries"] <= 2


def test_no_results_are_kept_and_nothing_runs_eagerly(celery_app: Celery) -> None:
    conf = celery_app.conf
    assert not conf.result_backend
    assert conf.task_ignore_result
    assert not conf.task_always_eager


def test_processes_take_no_more_than_they_run(celery_app: Celery) -> None:
    assert (celery_app.conf.worker_disable_prefetch, celery_app.conf.worker_prefetch_multiplier) == (True, 0)


def test_a_misspelt_queue_fails_at_once(celery_app: Celery) -> None:
    assert celery_app.conf.task_create_missing_queues is False


def test_beat_survives_a_clock_that_is_put_back(celery_app: Celery) -> None:
    assert celery_app.conf.beat_scheduler == "tasks.scheduler:SteadyScheduler"


def test_no_task_has_a_priority(celery_app: Celery, tasks: dict[str, object]) -> None:
    assert celery_app.conf.task_default_priority is None
    assert all(task.priority is None for task in tasks.values())  # type: ignore[attr-defined]


def test_a_periodic_task_expires_before_its_next_turn(celery_app: Celery) -> None:
    for entry in celery_app.conf.beat_schedule.values():
        assert entry["options"]["expires"] <= entry["schedule"]
