"""Pages run as they are printed: their blocks, in one terminal that remembers folder and variables."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from script.docs.generated import ROOT

BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str = "sh", section: str | None = None) -> list[str]:
    """The blocks of a language on a page, or in one section of it, as they are printed."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    if section is not None:
        found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found is not None, f"{page} has no section {section!r}"
        text = found[1]
    return [body for _, kind, body in BLOCK.findall(text) if kind == language]


class Terminal:
    """One shell after another, each where the last one ended; the first failing command ends a block."""

    def __init__(self, folder: Path, scratch: Path, variables: Mapping[str, str]) -> None:
        self._scratch = scratch
        self._variables = dict(variables)
        self._state = scratch / "state.sh"
        self._state.write_text(f"cd '{folder}'\n")

    def run(self, commands: str, *, seconds: float = 60) -> str:
        """What a block says. Raises AssertionError with it when the block fails."""
        said = self._scratch / "said"
        with said.open("wb") as output:
            ended = subprocess.run(
                ["bash", "-c", self._script(commands)],
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=seconds,
                check=False,
            )
        text = said.read_text(errors="replace")
        assert ended.returncode == 0, f"{commands}\nsaid:\n{text[-3000:]}"
        return text

    def start(self, commands: str, output: Path) -> subprocess.Popen[bytes]:
        """A block that goes on until it is ended, in a group of its own."""
        with output.open("wb") as stream:
            return subprocess.Popen(
                ["bash", "-c", f". '{self._state}'\nexec {commands}"],
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )

    def _script(self, commands: str) -> str:
        remember = f"{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} > '{self._state}'"
        return f". '{self._state}'\nset -eu\n{commands}\n{remember}\n"
