"""Celery's settings and its registry: what keeps messages from being lost is locked here."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from celery import Celery

from app.domain.task_names import Queue, TaskName
from config.settings import get_settings
from tests.support.horde import ROOT
from tests.support.services import LocalServices

PLATFORM_SECONDS = 30
"""What a host gives a process between SIGTERM and SIGKILL."""

LONGEST_DELAY_SECONDS = 60
"""A delayed message sits in one process's memory; what is later than this stands in a row."""


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


def test_no_task_runs_twice_by_the_visibility_time_out(celery_app: Celery, tasks: dict[str, object]) -> None:
    conf = celery_app.conf
    own = [task.time_limit for task in tasks.values() if task.time_limit is not None]  # type: ignore[attr-defined]
    longest = max(conf.task_time_limit, *own)
    assert conf.broker_transport_options["visibility_timeout"] >= max(300, 2 * longest)
    assert conf.task_soft_time_limit < conf.task_time_limit


def test_a_message_of_a_dead_process_is_looked_for_every_few_seconds(celery_app: Celery) -> None:
    options = celery_app.conf.broker_transport_options
    assert options["unacked_restore_interval"] * options["unacked_restore_throttle"] <= 10


def test_a_broker_that_is_away_is_waited_for_without_end(celery_app: Celery) -> None:
    conf = celery_app.conf
    assert conf.broker_connection_retry_on_startup
    assert conf.broker_connection_max_retries is None
    assert conf.broker_channel_error_retry
    assert conf.broker_transport_options["health_check_interval"] <= 10


def test_a_process_that_is_told_to_stop_ends_in_the_platforms_time(celery_app: Celery) -> None:
    assert 0 < celery_app.conf.worker_soft_shutdown_timeout <= PLATFORM_SECONDS - 8


def test_no_message_is_delayed_by_more_than_a_minute(tasks: dict[str, object]) -> None:
    delays = {task.default_retry_delay for task in tasks.values() if task.max_retries}  # type: ignore[attr-defined]
    assert max(delays) <= LONGEST_DELAY_SECONDS
    sources = [*(ROOT / "app").rglob("*.py"), *(ROOT / "tasks").rglob("*.py"), *(ROOT / "cli").rglob("*.py")]
    delayed = [
        f"{path.relative_to(ROOT)}:{node.value.lineno}"
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.keyword) and node.arg in {"eta", "countdown"}
    ]
    assert delayed == []


def test_children_are_replaced_before_they_grow_without_end(celery_app: Celery) -> None:
    assert celery_app.conf.worker_max_tasks_per_child
    assert celery_app.conf.worker_max_memory_per_child


def test_a_child_has_a_successor_at_once(celery_app: Celery) -> None:
    assert celery_app.conf.worker_pool == "tasks.pool:TaskPool"


def test_a_message_is_json_and_nothing_that_runs_when_it_is_read(celery_app: Celery) -> None:
    assert (celery_app.conf.task_serializer, celery_app.conf.accept_content) == ("json", ["json"])


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
