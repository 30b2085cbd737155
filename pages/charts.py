"""Small charts as paths of SVG: an hour as sixty steps, stretched by the page to whatever width it has.

Text stands beside a chart in HTML and not in it, so that it is not stretched, and can be read aloud.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120
"""The box that a chart is drawn in; its units have no size of their own."""

_TOPS = (1, 2, 3, 4, 5, 6, 8, 10)
_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Layer:
    """One shape of a chart, the class that colours it, and what it shows."""

    style: str
    path: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with its words: `top` is the value at its upper edge, `summary` says what a person sees in it."""

    title: str
    unit: str
    top: str
    summary: str
    layers: tuple[Layer, ...]
    has_legend: bool = False


Values = Sequence[float | None]
"""What to draw, oldest first; None is a gap."""


def round_top(largest: float) -> float:
    """The next round number that is not below a value; 1 for nothing."""
    if largest <= 1:
        return 1
    scale = 1
    while largest > _TOPS[-1] * scale:
        scale *= _FACTOR
    return next(top * scale for top in _TOPS if top * scale >= largest)


def area(title: str, unit: str, values: Values, summary: str) -> Chart:
    """A chart of one quantity that is there at every moment."""
    top = round_top(_largest(values))
    layers = (Layer("area", _filled(values, [0.0] * len(values), top)), Layer("line", _outline(values, top)))
    return Chart(title=title, unit=unit, top=_number(top), summary=summary, layers=layers)


def bars(title: str, unit: str, values: Values, summary: str) -> Chart:
    """A chart of what was done within each minute."""
    top = round_top(_largest(values))
    path = _filled(values, [0.0] * len(values), top, gap=0.15)
    return Chart(title=title, unit=unit, top=_number(top), summary=summary, layers=(Layer("bar", path),))


def stack(title: str, unit: str, series: Mapping[str, Values], summary: str) -> Chart:
    """A chart of quantities that add up, the first at the bottom."""
    minutes = max((len(values) for values in series.values()), default=0)
    totals: list[float | None] = [_total(values[at] for values in series.values()) for at in range(minutes)]
    top = round_top(_largest(totals))
    floor = [0.0] * minutes
    layers = []
    for number, (name, values) in enumerate(series.items(), 1):
        raised = [None if value is None else below + value for value, below in zip(values, floor, strict=True)]
        layers.append(Layer(f"s{number}", _filled(raised, floor, top), name))
        floor = [below if value is None else value for value, below in zip(raised, floor, strict=True)]
    return Chart(title=title, unit=unit, top=_number(top), summary=summary, layers=tuple(layers), has_legend=True)


def _total(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _largest(values: Values) -> float:
    return max((value for value in values if value is not None), default=0.0)


def _filled(values: Values, floor: Sequence[float], top: float, gap: float = 0.0) -> str:
    """A box for each value, from its floor up; `gap` is the part of a step that stays empty at either side."""
    step = WIDTH / max(1, len(values))
    boxes = []
    for at, (value, below) in enumerate(zip(values, floor, strict=True)):
        if value is not None and value > below:
            left, right = step * (at + gap), step * (at + 1 - gap)
            high, low = _height(value, top), _height(below, top)
            boxes.append(f"M{left:g} {low:g}V{high:g}H{right:g}V{low:g}z")
    return "".join(boxes)


def _outline(values: Values, top: float) -> str:
    """A line of steps along the values, broken at gaps."""
    step = WIDTH / max(1, len(values))
    moves, is_drawing = [], False
    for at, value in enumerate(values):
        if value is not None:
            height = _height(value, top)
            moves.append(f"V{height:g}" if is_drawing else f"M{step * at:g} {height:g}")
            moves.append(f"H{step * (at + 1):g}")
        is_drawing = value is not None
    return "".join(moves)


def _height(value: float, top: float) -> float:
    return round(HEIGHT * (1 - value / top), 1)


def _number(value: float) -> str:
    return f"{value:,.0f}"
