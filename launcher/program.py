"""A program that the launcher has run: its command line and everything around it.

Each program is started through a small shell script of its own, the way Procfile
hosts run their lines: shell variables work, nothing needs the escapes of a
configuration format, no secret appears in a command line, and a person can run
the very same thing by hand.
"""

import pwd
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MARKER = "HORDE_PROGRAM_OF"
"""Environment variable that names the home which a process belongs to."""


@dataclass(frozen=True, slots=True)
class Program:
    """One supervised process."""

    name: str
    command: str
    """A shell command line that `exec` can take."""
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    """Account to run as; none keeps the launcher's own."""
    stop_signal: str = "TERM"
    stop_whole_group: bool = True
    """Whether the stop signal goes to the children too."""
    scratch: Path | None = None
    """Folder that is emptied whenever the program starts."""

    def write_script(self, folder: Path) -> Path:
        """Write the script that becomes this program, and return its path.

        Only the program's own account may read it. For an account that is not
        the launcher's it lies in the program's directory, where that account
        can reach it.
        """
        own_tools = shlex.quote(str(Path(sys.executable).parent))
        lines = [
            "#!/bin/sh",
            f"cd {shlex.quote(str(self.directory))} || exit 1",
            f'export PATH={own_tools}:"$PATH"',
            # A Procfile host's single port means nothing here: every process has a port of its own.
            "unset PORT",
        ]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in self.environment.items()]
        if self.scratch is not None:
            scratch = shlex.quote(str(self.scratch))
            lines.append(f"rm -rf {scratch} && mkdir -p {scratch} || exit 1")
        lines.append(f"exec {self.command}")
        script = (folder if self.user is None else self.directory) / f"{self.name}.sh"
        script.unlink(missing_ok=True)
        script.touch(mode=0o700)
        script.write_text("\n".join(lines) + "\n")
        if self.user is not None:
            shutil.chown(script, self.user)
        return script


def primary_group(user: str) -> int:
    """The numeric id of an account's own group."""
    return pwd.getpwnam(user).pw_gid
