"""The README names what there is."""

from pathlib import Path

from tools.chat_worker_example.__main__ import COMMANDS
from tools.chat_worker_example.config import BACKEND_KINDS, OPTIONS
from tools.chat_worker_example.values import CAPABILITIES, GUARANTEES

FOLDER = Path(__file__).parents[3] / "tools" / "chat_worker_example"
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_setting_has_its_row() -> None:
    section = README.partition("\n## Settings\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    listed = [tuple(cell.strip(" `") for cell in row.split("|")[1:3]) for row in rows]
    assert [(option.variable, option.flag) for option in OPTIONS] == listed


def test_every_command_has_its_row() -> None:
    for command in COMMANDS:
        assert f"| `horde-worker{'' if command == 'run' else f' {command}'}` |" in README


def test_every_kind_of_backend_has_its_page() -> None:
    pages = {path.stem.replace("-", "") for path in (FOLDER.parents[1] / "docs/how-to/backends").glob("*.md")}
    kinds = {kind.replace(".", "").replace("openai", "openaicompatible") for kind in BACKEND_KINDS} - {"auto"}
    assert kinds == pages


def test_every_name_that_can_be_declared_is_explained() -> None:
    assert [name for name in sorted(CAPABILITIES | GUARANTEES) if f"`{name}`" not in README] == []


def test_every_module_is_on_the_reading_list() -> None:
    modules = {path.name for path in FOLDER.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert [name for name in sorted(modules) if f"`{name}`" not in README] == []
