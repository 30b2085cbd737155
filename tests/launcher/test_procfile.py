"""Reading a Procfile."""

from pathlib import Path

import pytest

from launcher.errors import LauncherError
from launcher.options import CHECKOUT
from launcher.procfile import read_procfile


def test_lines_keep_their_order_and_comments_are_skipped(tmp_path: Path) -> None:
    procfile = tmp_path / "Procfile"
    procfile.write_text('# who\nweb: serve --port "$PORT" # not cut: 1\n\nclock:tick\n')
    assert list(read_procfile(procfile).items()) == [
        ("web", 'serve --port "$PORT" # not cut: 1'),
        ("clock", "tick"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("web: a\nnothing\n", "line 2: write it as"),
        ("web:\n", "line 1: write it as"),
        ("a b: c\n", "line 1: write it as"),
        ("web: a\nweb: b\n", "line 2: web is there already"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, text: str, problem: str) -> None:
    procfile = tmp_path / "Procfile"
    procfile.write_text(text)
    with pytest.raises(LauncherError, match=problem):
        read_procfile(procfile)


def test_a_missing_procfile_is_named(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="cannot be read"):
        read_procfile(tmp_path / "Procfile")


def test_the_horde_has_every_process_of_its_architecture() -> None:
    """Architecture A1."""
    assert set(read_procfile(CHECKOUT / "Procfile")) == {
        "release",
        "web",
        "front",
        "verdict",
        "tasks",
        "fetch",
        "media",
        "beat",
        "flower",
    }
