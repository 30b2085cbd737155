"""The start script of a program."""

import subprocess
from pathlib import Path

from launcher.program import Program

AWKWARD = "100% \"of\" 'it' $HOME ; # `x`"


def test_a_script_hands_environment_and_command_on_unchanged(tmp_path: Path) -> None:
    program = Program("show", "printf '%s|%s|%s' \"$AWKWARD\" \"$PWD\" '; # %h'", tmp_path, {"AWKWARD": AWKWARD})
    script = program.write_script(tmp_path)
    shown = subprocess.run(["/bin/sh", str(script)], capture_output=True, text=True, check=True).stdout
    assert shown == f"{AWKWARD}|{tmp_path}|; # %h"
    assert script.stat().st_mode & 0o777 == 0o700


def test_the_scratch_folder_is_emptied_at_each_start(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    program = Program("count", f"ls {scratch}", tmp_path, scratch=scratch)
    script = program.write_script(tmp_path)
    subprocess.run(["/bin/sh", str(script)], check=True)
    (scratch / "counters.db").touch()
    listed = subprocess.run(["/bin/sh", str(script)], capture_output=True, text=True, check=True).stdout
    assert listed == ""
    assert scratch.is_dir()
