"""Charts as paths: what is drawn is what the numbers say."""

import re

import pytest

from pages.charts import HEIGHT, WIDTH, area, bars, round_top, stack


def boxes(path: str) -> list[tuple[float, float, float, float]]:
    """The boxes of a path: left, lower edge, upper edge, right."""
    found = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)V\2z", path)
    return [(float(left), float(low), float(high), float(right)) for left, low, high, right in found]


@pytest.mark.parametrize(
    ("largest", "top"),
    [(0, 1), (0.2, 1), (1, 1), (1.5, 2), (7, 8), (9, 10), (11, 20), (450, 500), (1_000_001, 2_000_000)],
)
def test_the_upper_edge_is_a_round_number_that_holds_everything(largest: float, top: float) -> None:
    assert round_top(largest) == top


def test_a_bar_is_as_high_as_its_value_and_nothing_is_drawn_for_nothing() -> None:
    chart = bars("Throughput", "tokens", [0, 5, 10, None], "")
    (half, whole) = boxes(chart.layers[0].path)
    assert (chart.top, half[1:3], whole[1:3]) == ("10", (HEIGHT, HEIGHT / 2), (HEIGHT, 0))
    assert WIDTH / 4 < half[0] < half[3] < WIDTH / 2


def test_a_line_is_broken_where_nobody_looked() -> None:
    line = area("Waiting", "jobs", [1, 1, None, 1], "").layers[1]
    assert line.path == "M0 0H150V0H300M450 0H600"


def test_layers_stand_on_each_other() -> None:
    chart = stack("Workers", "workers", {"a": [1, None], "b": [3, 2]}, "")
    lower, upper = (boxes(layer.path) for layer in chart.layers)
    assert [layer.name for layer in chart.layers] == ["a", "b"]
    assert chart.top == "4"
    assert lower == [(0, HEIGHT, 90, 300)]
    assert upper == [(0, 90, 0, 300), (300, HEIGHT, 60, 600)]


def test_an_empty_chart_has_no_shape() -> None:
    assert stack("Workers", "workers", {}, "").layers == ()
    assert [layer.path for layer in area("Waiting", "jobs", [None] * 60, "").layers] == ["", ""]
