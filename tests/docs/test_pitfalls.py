"""Every test that the page of pitfalls names as a proof is there."""

import ast
import re

from script.docs.generated import ROOT

PAGE = ROOT / "docs" / "explanation" / "pitfalls.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def names_in(file: str) -> set[str]:
    """The tests of a file, by their names."""
    path = ROOT / file
    if not path.exists():
        return set()
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_every_test_that_the_page_names_exists() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 100
    there = {file: names_in(file) for file, _ in named}
    assert [f"{file}::{name}" for file, name in named if name not in there[file]] == []


def rows() -> list[list[str]]:
    """The cells of every row of the page's tables."""
    lines = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| "))
    cells = ([cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")] for line in lines)
    return [row for row in cells if row[2] not in {"test", "---"}]


def test_every_row_names_its_test_or_the_decision_that_says_why_there_is_none() -> None:
    assert len(rows()) > 60
    assert [
        wrong for wrong, defence, test in rows() if not NAMED.search(test) and not is_explained(defence + test)
    ] == []


def is_explained(cells: str) -> bool:
    """Whether a row says why it has no test."""
    return "/0088-" in cells or "does not apply: " in cells
