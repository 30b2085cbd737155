"""Reading a Procfile: one `name: command` a line."""

import re
from pathlib import Path

from launcher.errors import LauncherError

RELEASE = "release"
"""The line that is run once, before the others start."""

LINE = re.compile(r"(?P<name>[A-Za-z0-9_-]+):\s*(?P<command>\S.*)")


def read_procfile(path: Path) -> dict[str, str]:
    """Return the commands by process name, in the file's order.

    Raises LauncherError on a line that is none, and on a name that comes twice.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise LauncherError(f"The Procfile {path} cannot be read: {error.strerror}.") from error
    commands: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = LINE.fullmatch(stripped)
        if match is None:
            raise LauncherError(f"{path}, line {number}: write it as `name: command`.")
        if match["name"] in commands:
            raise LauncherError(f"{path}, line {number}: {match['name']} is there already.")
        commands[match["name"]] = match["command"]
    return commands
