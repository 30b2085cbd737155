"""How a bench tells its figures to a program, beside what it prints for people.

`python -m bench.NAME` prints. Where BENCH_FIGURES names a file, each figure goes there too, a
line of JSON each, under the name that `bench.bars` knows it by. `script/bench` reads them.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "BENCH_FIGURES"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one run; `ratio` is to the baseline that was measured in the same run, where there is one."""

    name: str
    value: float
    ratio: float | None = None


def tell(*figures: Figure) -> None:
    """Write figures where BENCH_FIGURES says; nothing when it is not set."""
    target = os.environ.get(VARIABLE)
    if target is None:
        return
    with Path(target).open("a") as file:
        file.writelines(f"{json.dumps(asdict(figure))}\n" for figure in figures)


def told(path: Path) -> list[Figure]:
    """Read the figures that a bench wrote."""
    return [Figure(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def worst(figures: Iterable[Figure], *, at_most: bool) -> Figure | None:
    """Of one name's figures, the one that is farthest on the wrong side."""
    ordered = sorted(figures, key=lambda figure: figure.value)
    if not ordered:
        return None
    return ordered[-1] if at_most else ordered[0]
