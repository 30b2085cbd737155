"""What a running horde shows on `/metrics` is what the page lists, and says what happened (operations O4)."""

import http.client
import time
import urllib.request
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from app.domain.model_labels import MOST_MODELS
from script.docs.generated import declared_metrics
from tests.docs.test_watching import ALERTS, METRICS, asked
from tests.support.hand_worker import HandWorker, call
from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import LocalServices, free_port, wait_until

DECLARED = {metric.name: metric for metric in declared_metrics()}
FOREIGN = ("python_", "process_")


def ports(horde: HordeProcesses) -> dict[str, int]:
    """Every process that shows figures."""
    named = {name: getattr(horde.ports, name) for name in ("front", "verdict", "tasks", "media", "beat")}
    return named | {"web": horde.ports.native}


def families(port: int) -> list[Metric]:
    """What one process shows."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=15) as response:
        return list(text_string_to_metric_families(response.read().decode()))


def shown(port: int) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every series of one process with its value."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families(port)
        for sample in family.samples
    }


def value(port: int, name: str, **labels: str) -> float | None:
    """One series, None when it is not there."""
    return shown(port).get((name, frozenset(labels.items())))


def rose(port: int, before: float, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a series is above what it was."""
    return (value(port, name, **labels) or 0.0) > before


def declared_name(family: Metric) -> str:
    """The name that the page lists a family under."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def test_whatever_a_process_shows_is_on_the_page_with_its_kind_and_labels(horde: HordeProcesses) -> None:
    horde.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello."}])
    for process, port in ports(horde).items():
        for family in families(port):
            if family.name.startswith(FOREIGN):
                continue
            name = declared_name(family)
            assert name in DECLARED, (process, name)
            assert DECLARED[name].kind == family.type, name
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            assert labels <= set(DECLARED[name].labels), name


def test_no_process_shows_a_family_twice(horde: HordeProcesses) -> None:
    for process, port in ports(horde).items():
        names = [family.name for family in families(port)]
        assert len(names) == len(set(names)), process


def test_what_needs_no_label_or_raises_an_alarm_is_shown_from_the_start(horde: HordeProcesses) -> None:
    seen = {name for port in ports(horde).values() for name, _ in shown(port)}
    plain = {series for series, metric in METRICS.items() if not metric.labels}
    counted = {name for alert in ALERTS for name, _ in asked(alert["expr"]) if name.endswith("_total")}
    # What the fetch process counts is shown by it alone, which this horde does not run.
    assert (plain | counted) - seen - {"horde_image_fetches_deferred_total"} == set()


def test_a_chat_moves_the_figures_of_every_process_that_it_passes(horde: HordeProcesses) -> None:
    watched = [
        ("front", "horde_front_seconds_count", {"route": "/v1/chat/completions", "method": "POST", "status": "200"}),
        ("front", "horde_front_pops_total", {"result": "job"}),
        (
            "web",
            "horde_native_seconds_count",
            {"route": "/api/v2/generate/chat/async", "method": "POST", "status": "202"},
        ),
        ("web", "horde_pops_total", {"result": "job"}),
        ("web", "horde_queued_seconds_count", {}),
        ("web", "horde_signals_sent_total", {"kind": "queue"}),
        ("verdict", "horde_verdicts_total", {"verdict": "accepted"}),
        ("verdict", "horde_task_seconds_count", {"task": "verdict.verify_generation", "outcome": "success"}),
        ("tasks", "horde_generations_settled_total", {}),
        ("tasks", "horde_task_seconds_count", {"task": "settlement.settle_batch", "outcome": "success"}),
    ]
    before = [value(ports(horde)[process], name, **labels) or 0.0 for process, name, labels in watched]
    horde.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello."}])
    for (process, name, labels), was in zip(watched, before, strict=True):
        wait_until(
            partial(rose, ports(horde)[process], was, name, labels), 15, f"{name} {labels} of {process} does not rise"
        )


def test_what_waits_and_who_serves_is_shown_by_model(horde: HordeProcesses) -> None:
    model = f"watched-{uuid4().hex[:8]}"
    worker = HandWorker(horde, model)
    assert worker.pop() is None
    shows = partial(value, horde.ports.native)
    wait_until(lambda: shows("horde_model_workers", model=model) == 1, 10, "the worker is not shown")
    body = {"model": model, "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 32}
    ids = [call("POST", f"{horde.native}/api/v2/generate/chat/async", body, KEYS.demo).body["id"] for _ in range(3)]
    wait_until(lambda: shows("horde_queue_entries", model=model) == 3, 10, "the queue is not shown")
    assert (shows("horde_queue_head_seconds", model=model) or 0.0) > 0
    for request_id in ids:
        call("DELETE", f"{horde.native}/api/v2/generate/chat/status/{request_id}", key=KEYS.demo)
    wait_until(lambda: shows("horde_queue_entries", model=model) is None, 10, "what left the queue is shown")


def test_unsettled_work_is_shown_with_its_age(horde: HordeProcesses) -> None:
    shows = partial(value, horde.ports.native)
    wait_until(lambda: shows("horde_settlement_lag_seconds") == 0, 15, "there is a lag at rest")
    horde.kill("tasks")
    horde.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello."}])
    wait_until(lambda: (shows("horde_settlement_lag_seconds") or 0) > 1, 15, "no lag is shown")
    horde.start("tasks")
    wait_until(lambda: shows("horde_settlement_lag_seconds") == 0, 30, "the lag stays")


def test_every_service_is_shown_by_who_needs_it(horde: HordeProcesses) -> None:
    for process, services in {
        "web": {"database", "redis", "broker"},
        "verdict": {"database", "redis", "broker"},
        "media": {"database", "redis", "broker", "storage"},
    }.items():
        series = shown(ports(horde)[process])
        up = {
            dict(labels)["service"]: number for (name, labels), number in series.items() if name == "horde_service_up"
        }
        assert up == dict.fromkeys(services, 1.0), process


def test_routes_and_methods_that_clients_make_up_are_one_series(horde: HordeProcesses) -> None:
    for face, port in ((horde.front, horde.ports.front), (horde.native, horde.ports.native)):
        before = len(shown(port))
        for number in range(20):
            connection = http.client.HTTPConnection(face.removeprefix("http://"), timeout=10)
            connection.request(f"MADEUP{number}", f"/nowhere/{number}")
            assert connection.getresponse().status >= 400
            connection.close()
        names = {dict(labels).get("route") for _, labels in shown(port)}
        assert "unknown" in names
        assert not any("nowhere" in str(name) for name in names)
        # One histogram of one route, method and status is new, and what Python itself shows varies by a little.
        assert len(shown(port)) - before < 60


def test_models_that_workers_make_up_are_no_more_series_than_the_most(horde: HordeProcesses) -> None:
    prefix = uuid4().hex[:8]
    worker = HandWorker(
        horde, f"{prefix}-chat", prompt_jobs=True, models=[f"{prefix}-{number}" for number in range(MOST_MODELS + 50)]
    )
    worker.pop()
    shows = partial(value, horde.ports.native, "horde_model_workers", model="other")
    wait_until(lambda: (shows() or 0) >= 50, 10, "the models are not folded")
    models = [labels for name, labels in shown(horde.ports.native) if name == "horde_model_workers"]
    # Its models would crowd out those of the next flow.
    horde.query(
        "UPDATE workers SET last_seen_at = now() - interval '1 day' WHERE name = :name", name=f"hand-{worker.model}"
    )
    assert len(models) == MOST_MODELS + 1


@pytest.fixture
def two_processes(services: LocalServices, database_url: str, tmp_path: Path) -> Iterator[HordeProcesses]:
    """A native API of two processes behind one port."""
    horde = HordeProcesses(services, database_url, tmp_path, {"NATIVE_PROCESSES": "2"})
    try:
        horde.start("web")
        horde.wait_web()
        yield horde
    finally:
        horde.close()


@pytest.fixture
def lonely(services: LocalServices, database_url: str, tmp_path: Path) -> Iterator[HordeProcesses]:
    """A native API whose Redis is away, and with it the broker."""
    horde = HordeProcesses(services, database_url, tmp_path, {"REDIS_URL": f"redis://127.0.0.1:{free_port()}/0"})
    try:
        horde.start("web")
        horde.wait_web()
        yield horde
    finally:
        horde.close()


def test_without_redis_a_scrape_is_quick_says_so_and_still_shows_what_waits(lonely: HordeProcesses) -> None:
    began = time.monotonic()
    seen = {(name, *labels): number for (name, labels), number in shown(lonely.ports.native).items()}
    assert time.monotonic() - began < 5
    up = {service: seen["horde_service_up", ("service", service)] for service in ("database", "redis", "broker")}
    assert up == {"database": 1, "redis": 0, "broker": 0}
    assert seen[("horde_workers_online",)] == 0
    assert seen[("horde_settlement_lag_seconds",)] == 0


def test_without_the_database_a_scrape_says_so_and_makes_nothing_up(services: LocalServices, tmp_path: Path) -> None:
    horde = HordeProcesses(services, f"postgres://horde@127.0.0.1:{free_port()}/horde", tmp_path)
    try:
        horde.start("web")
        horde.wait_web()
        names = {name for name, _ in shown(horde.ports.native)}
        assert value(horde.ports.native, "horde_service_up", service="database") == 0
        assert value(horde.ports.native, "horde_service_up", service="broker") == 1
        assert "horde_workers_online" not in names
        assert "horde_settlement_lag_seconds" not in names
    finally:
        horde.close()


CALLS = 60


def test_two_processes_behind_one_port_are_added_up_whichever_answers(two_processes: HordeProcesses) -> None:
    port = two_processes.ports.native
    labels = {"route": "/api/openapi.json", "method": "GET", "status": "200"}
    for _ in range(CALLS):
        assert two_processes.call("GET", "/api/openapi.json").status == 200
    seen: Mapping[str, float]
    for _ in range(12):
        seen = {name: number for (name, found), number in shown(port).items() if found == frozenset(labels.items())}
        assert seen["horde_native_seconds_count"] == CALLS
        assert value(port, "horde_service_up", service="database") == 1
    files = list((two_processes.folder / "figures" / "web").glob("histogram_*.db"))
    assert len(files) >= 2, "both processes count"
