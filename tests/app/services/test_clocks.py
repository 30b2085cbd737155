"""What is due is told by the database's clock, so that a machine with a wrong one ends and rescues nothing."""

import ast

from tests.support.horde import ROOT

READERS = {
    # The end of a key, beside the database's own look at it.
    "accounts", "shared_keys", "transfers",
    # Windows of what Redis holds: late at the worst.
    "countermeasures", "rate_limits",
    # Objects of no request are kept for hours before they go.
    "delete_objects",
    # Shown or measured, and for a worker's next check-in.
    "pop", "user_profile", "worker_screen",
}  # fmt: skip
"""Modules that read the clock of their machine, and for what. None of them moves a state by it."""

CLOCKS = {("datetime", "now"), ("datetime", "utcnow"), ("time", "time"), ("date", "today")}


def reads_the_clock(source: str) -> bool:
    """Whether a module asks its machine what time it is."""
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (node.value.id, node.attr) in CLOCKS
        for node in ast.walk(ast.parse(source))
    )


def test_only_what_moves_no_state_reads_the_clock_of_its_machine() -> None:
    modules = (ROOT / "app" / "services").glob("*.py")
    assert {path.stem for path in modules if reads_the_clock(path.read_text())} == READERS
