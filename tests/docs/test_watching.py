"""The files of `deploy/` for Prometheus and Grafana ask for figures that exist, and each alert has its section."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import yaml

from launcher.procfile import read_procfile
from script.docs.generated import ROOT, declared_metrics

RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
SCRAPES = ROOT / "deploy" / "prometheus" / "prometheus.yml"
BOARD = orjson.loads((ROOT / "deploy" / "grafana" / "horde.json").read_bytes())
ALERTS: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]

METRICS = {series: metric for metric in declared_metrics() for series in metric.series}
SCRAPED_LABELS = frozenset({"job", "instance", "process"})
"""Labels that a scrape sets; a metric's own label of such a name would be renamed."""

SELECTED = re.compile(r"\b(up|horde_\w+)(?:\{([^}]*)\})?")
MATCHED = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
JOINED = re.compile(r"\b(?:by|on) \(([^)]*)\)")


def asked(expression: str) -> Iterator[tuple[str, set[str]]]:
    """The series of an expression, each with the labels that it is matched by."""
    for name, matchers in SELECTED.findall(expression):
        yield name, set(MATCHED.findall(matchers))


def faults_of(expression: str) -> list[str]:
    """What an expression asks for and nobody shows."""
    faults, known = [], {*SCRAPED_LABELS, "le"}
    for name, labels in asked(expression):
        if name == "up":
            continue
        if name not in METRICS:
            faults.append(f"no series {name}")
            continue
        known |= set(METRICS[name].labels)
        faults += [f"{name} has no label {label}" for label in labels - {*METRICS[name].labels, *SCRAPED_LABELS}]
    joined = {label.strip() for labels in JOINED.findall(expression) for label in labels.split(",") if label.strip()}
    return faults + [f"nothing has a label {label}" for label in sorted(joined - known)]


def test_a_fault_in_an_expression_is_found() -> None:
    assert faults_of('sum by (kind) (rate(horde_signals_lost_total{kind="chat"}[5m])) > 0') == []
    assert faults_of("horde_signals_lost > 0") == ["no series horde_signals_lost"]
    assert faults_of('horde_signals_lost_total{queue="chat"}') == ["horde_signals_lost_total has no label queue"]
    assert faults_of("sum by (colour) (horde_signals_lost_total)") == ["nothing has a label colour"]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_an_alert_asks_for_figures_that_exist(alert: dict[str, Any]) -> None:
    assert list(asked(alert["expr"]))
    assert faults_of(alert["expr"]) == []


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_an_alert_names_its_section_of_the_runbook(alert: dict[str, Any]) -> None:
    name = alert["alert"]
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["annotations"]["runbook"] == f"how-to/operate/#{name.lower()}"
    page = (ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {name}\n\n(.+?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert len(section[1].strip()) > 80, "say what it means and what to do"


def test_every_section_of_the_runbook_has_its_alert() -> None:
    page = (ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")
    assert re.findall(r"^### (Horde\w+)$", page, re.MULTILINE) == [alert["alert"] for alert in ALERTS]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_a_panel_asks_for_figures_that_exist(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    assert [fault for target in panel["targets"] for fault in faults_of(target["expr"])] == []


def test_every_panel_has_a_place_of_its_own() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert x < 24
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


def test_no_metric_has_a_label_that_a_scrape_sets() -> None:
    assert [metric.name for metric in METRICS.values() if SCRAPED_LABELS & set(metric.labels)] == []


def test_prometheus_asks_every_process_that_shows_figures() -> None:
    [job] = yaml.safe_load(SCRAPES.read_text())["scrape_configs"]
    named = [target["labels"]["process"] for target in job["static_configs"]]
    assert sorted(named) == sorted(read_procfile(ROOT / "Procfile").keys() - {"release", "flower"})


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on the PATH: install Prometheus")
@pytest.mark.parametrize("words", [("check", "rules", str(RULES)), ("check", "config", str(SCRAPES))])
def test_prometheus_takes_the_files(words: tuple[str, ...]) -> None:
    checked = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=30, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
