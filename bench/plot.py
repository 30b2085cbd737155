"""A small line chart as SVG, readable on light and dark pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, MARGIN = 640, 300, 48
COLOURS = ("#888888", "#2f81f7", "#d4691b", "#2da44e", "#a371f7", "#d03d6b")
NAME_WIDTH = 72
TICKS = 6


@dataclass(frozen=True, slots=True)
class Line:
    """Named points."""

    name: str
    points: Sequence[tuple[float, float]]


def plot(lines: Sequence[Line], x_name: str, y_name: str) -> str:
    """The chart of some lines, as dots joined by steps: a value holds until the next point."""
    x_most = max(x for line in lines for x, _ in line.points)
    y_most = max(y for line in lines for _, y in line.points)

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            round(MARGIN + x / x_most * (WIDTH - 2 * MARGIN), 1),
            round(HEIGHT - MARGIN - y / y_most * (HEIGHT - 2 * MARGIN), 1),
        )

    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    title = f"<title>{escape(y_name)} over {escape(x_name)}</title>"
    parts = [f'{head} font-size="11" fill="#888888" role="img">{title}']
    left, bottom = place(0, 0)
    right, top = place(x_most, y_most)
    parts.append(f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#888888"/>')
    for tick in range(TICKS + 1):
        x, y = place(x_most * tick / TICKS, y_most * tick / TICKS)
        parts.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{x_most * tick / TICKS:.0f}</text>')
        parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{y_most * tick / TICKS:.0f}</text>')
    parts.append(f'<text x="{(left + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_name)}</text>')
    parts.append(f'<text x="{left}" y="{top - 10}">{escape(y_name)}</text>')
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        places = [place(x, y) for x, y in line.points]
        start = places[0] if line.points[0][0] == 0 else (left, bottom)
        steps = "".join(f"H{x}V{y}" for x, y in places)
        dots = "".join(f'<circle cx="{x}" cy="{y}" r="1.6"/>' for x, y in places)
        parts.append(f'<path d="M{start[0]} {start[1]}{steps}" fill="none" stroke="{colour}" stroke-width="1"/>')
        parts.append(f'<g fill="{colour}">{dots}</g>')
        name_x = right - NAME_WIDTH * (len(lines) - number)
        parts.append(f'<text x="{name_x}" y="{top - 10}" fill="{colour}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
