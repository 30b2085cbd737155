"""What a start would run, given options and environment."""

from pathlib import Path

import pytest

from config.settings import LauncherSettings
from launcher.errors import LauncherError
from launcher.home import Home
from launcher.options import UpOptions
from launcher.plan import Plan

EXTERNAL = {
    "database_url": "postgres://u:p@db.example:5432/horde",
    "redis_url": "rediss://cache.example:6380",
    "s3_endpoint_url": "https://s3.example",
}


def make_plan(folder: Path, options: UpOptions, **given: str) -> Plan:
    home = Home(folder / "home")
    home.create()
    return Plan(LauncherSettings(horde_port_base=7000, **given), options, home)  # type: ignore[arg-type]


def names(plan: Plan) -> set[str]:
    return {program.name for programs in plan.groups().values() for program in programs}


def test_everything_that_is_not_given_is_run(tmp_path: Path) -> None:
    assert names(make_plan(tmp_path, UpOptions())) == {
        *("postgres", "redis", "s3"),
        *("web", "front", "verdict", "tasks", "fetch", "media", "beat", "flower"),
        *("backend", "worker"),
    }


def test_given_services_are_used_as_they_are(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, UpOptions(), **EXTERNAL)
    assert names(plan).isdisjoint({"postgres", "redis", "s3"})
    assert EXTERNAL.items() <= plan.endpoints().items()
    assert plan.environment["DATABASE_URL"] == EXTERNAL["database_url"]
    assert "AWS_ACCESS_KEY_ID" not in plan.environment
    assert not {7003, 7004, 7005} & set(plan.wanted_ports())


def test_a_backend_of_ones_own_replaces_the_local_model(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, UpOptions(backend_url="http://10.0.0.1:5001", backend_model="mine"))
    [worker] = plan.groups()["volunteer"]
    assert "backend" not in names(plan)
    assert worker.environment["BACKEND_URL"] == "http://10.0.0.1:5001"
    assert worker.environment["MODEL_NAME"] == "mine"


def test_no_worker_means_no_model_either(tmp_path: Path) -> None:
    assert names(make_plan(tmp_path, UpOptions(with_worker=False))).isdisjoint({"backend", "worker"})


def test_the_worker_learns_nothing_that_a_volunteer_would_not_know(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, UpOptions())
    [worker] = plan.groups()["volunteer"]
    secrets = {plan.database_url, plan.redis_url, plan.secrets.admin_key, plan.secrets.service_passkey}
    assert secrets.isdisjoint(worker.environment.values())


def test_task_processes_are_told_to_stop_softly(tmp_path: Path) -> None:
    assert make_plan(tmp_path, UpOptions()).environment["REMAP_SIGTERM"] == "SIGQUIT"


def test_endpoints_hold_exactly_what_operations_o1_lists(tmp_path: Path) -> None:
    endpoints = make_plan(tmp_path, UpOptions()).endpoints()
    assert set(endpoints) == {
        *("front", "native", "flower", "metrics"),
        *("admin_key", "demo_key", "worker_key", "service_passkey"),
        *("database_url", "redis_url", "s3_endpoint_url"),
    }
    assert endpoints["front"] == "http://127.0.0.1:7000"
    assert endpoints["metrics"] == {
        "web": "http://127.0.0.1:7001/metrics",
        "front": "http://127.0.0.1:7000/metrics",
        "verdict": "http://127.0.0.1:7010/metrics",
        "tasks": "http://127.0.0.1:7011/metrics",
        "media": "http://127.0.0.1:7012/metrics",
        "beat": "http://127.0.0.1:7013/metrics",
        "fetch": "http://127.0.0.1:7014/metrics",
    }


def test_every_process_keeps_its_metrics_apart(tmp_path: Path) -> None:
    programs = make_plan(tmp_path, UpOptions()).groups()["horde"]
    folders = {program.environment["PROMETHEUS_MULTIPROC_DIR"] for program in programs}
    assert len(folders) == len(programs)
    assert folders == {str(program.scratch) for program in programs}


def test_a_procfile_may_not_take_a_name_of_the_launchers(tmp_path: Path) -> None:
    procfile = tmp_path / "Procfile"
    procfile.write_text("redis: sleep 1\n")
    plan = make_plan(tmp_path, UpOptions(procfile=procfile))
    with pytest.raises(LauncherError, match="may not call a process redis"):
        plan.groups()
