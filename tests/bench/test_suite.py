"""Bars and benches belong together, and `script/bench` says what a bench came to."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.bars import BARS, BENCHES, Bar
from bench.report import VARIABLE, Figure, tell, told, worst
from bench.suite import QUICK, Row, table
from tests.support.horde import ROOT

FOLDER = ROOT / "bench"
LATENCY = Bar("latency", "a_bench", "a latency", 20, "ms", "a bare hello")
RATE = Bar("rate", "a_bench", "a rate", 80, "/s", at_most=False)


def told_names() -> set[str]:
    """Every name that stands in a bench as that of a figure, or that a table there gives one."""
    source = "\n".join(path.read_text() for path in FOLDER.glob("*.py") if path.name not in {"bars.py", "suite.py"})
    return set(re.findall(r'"([a-z_0-9]+)"', source))


def test_every_bar_has_a_name_of_its_own() -> None:
    assert len({bar.name for bar in BARS}) == len(BARS)


def test_every_bar_is_told_by_some_bench() -> None:
    assert {bar.name for bar in BARS} <= told_names()


def test_every_figure_that_is_told_by_name_has_a_bar() -> None:
    source = "\n".join(path.read_text() for path in FOLDER.glob("*.py"))
    assert set(re.findall(r'Figure\("([a-z_0-9]+)"', source)) <= {bar.name for bar in BARS}


def test_every_bench_of_a_bar_is_there_and_has_a_quick_form() -> None:
    assert all((FOLDER / f"{bench.split()[0]}.py").exists() for bench in BENCHES)
    assert QUICK.keys() == set(BENCHES)


def test_a_bench_tells_its_figures_where_it_is_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "figures"
    monkeypatch.delenv(VARIABLE, raising=False)
    tell(Figure("unheard", 1.0))
    monkeypatch.setenv(VARIABLE, str(target))
    tell(Figure("latency", 1.5, 3.0), Figure("rate", 2.0))
    tell(Figure("latency", 2.5))
    assert told(target) == [Figure("latency", 1.5, 3.0), Figure("rate", 2.0), Figure("latency", 2.5)]


def test_the_worst_figure_counts() -> None:
    figures = [Figure("a", 2.0), Figure("a", 3.0), Figure("a", 1.0)]
    assert worst(figures, at_most=True) == Figure("a", 3.0)
    assert worst(figures, at_most=False) == Figure("a", 1.0)
    assert worst([], at_most=True) is None


@pytest.mark.parametrize(
    ("bar", "value", "verdict"),
    [
        (LATENCY, 20.0, "met"),
        (LATENCY, 20.1, "missed"),
        (RATE, 80.0, "met"),
        (RATE, 79.9, "missed"),
    ],
)
def test_a_bar_is_met_or_missed(bar: Bar, value: float, verdict: str) -> None:
    assert Row(bar, Figure(bar.name, value)).verdict == verdict


def test_a_bar_without_a_figure_was_not_measured() -> None:
    row = Row(RATE, None)
    assert (row.verdict, row.is_excused) == ("not measured", False)


def test_a_bar_whose_peer_is_not_installed_is_not_held_against_the_horde() -> None:
    bar = replace(RATE, peer="A peer")
    row = Row(bar, None)
    assert (row.verdict, row.is_excused) == ("A peer is not installed", True)
    missed = Row(bar, Figure(bar.name, 79.9))
    assert (missed.verdict, missed.is_excused) == ("missed", False)


def test_the_command_passes_without_the_peer() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "BENCH_LITELLM"}
    if shutil.which("litellm") is not None:
        pytest.skip("it is installed here")
    words = [sys.executable, "-m", "bench.suite", "--only", "peers", "--json"]
    ran = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=60)
    found = json.loads(ran.stdout)
    assert [figure["verdict"] for figure in found["figures"]] == ["LiteLLM is not installed"]
    assert found["machine"]["litellm"] == "not installed"
    assert ran.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({bench.split()[0] for bench in BENCHES} - {"contract", "peers"}))
def test_every_bench_tells_each_of_its_figures(name: str) -> None:
    words = [sys.executable, "-m", "bench.suite", "--only", name, "--quick", "--json"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, check=False, timeout=300)
    values = {figure["name"]: figure["value"] for figure in json.loads(ran.stdout)["figures"]}
    assert {what for what, value in values.items() if value is None} == set(), ran.stderr.decode()[-3000:]


def test_the_table_shows_bar_figure_and_ratio() -> None:
    lines = table([Row(LATENCY, Figure("latency", 19.04, 41.3))]).splitlines()
    assert lines[2] == "| a latency | ≤ 20 ms | 19 | 41.3 × a bare hello | met |"


def test_one_bench_by_the_command() -> None:
    words = [sys.executable, "-m", "bench.suite", "--only", "contract", "--quick", "--json"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, check=False, timeout=60)
    found = json.loads(ran.stdout)
    figures = {figure["name"]: figure for figure in found["figures"]}
    assert set(figures) == {"contract_4k", "contract_1m"}
    assert all(figure["value"] > 0 and figure["ratio"] > 1 for figure in figures.values())
    assert found["machine"]["postgresql"]
    assert found["machine"]["valkey"]
    missed = any(figure["verdict"] != "met" for figure in figures.values())
    assert ran.returncode == (missed or bool(found["failed"]))
