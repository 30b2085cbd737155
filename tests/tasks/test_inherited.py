"""A child of a task process and the connections of its parent."""

import socket
import subprocess
import sys

import psutil
import pytest

from tests.support.horde import MODEL, HordeProcesses
from tests.support.services import wait_until

FORKS = """
import os, socket, sys
from tasks.inherited import leave_inherited_connections
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
if os.fork() == 0:
    leave_inherited_connections()
    sys.stdin.read()
"""
"""Connects, and forks a child that lives until its input ends; its parent ends at once."""


def test_a_connection_ends_with_its_parent_although_a_child_lives() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        program = [sys.executable, "-c", FORKS, str(listener.getsockname()[1])]
        with subprocess.Popen(program, stdin=subprocess.PIPE) as parent:
            answerer, _ = listener.accept()
            answerer.settimeout(10)
            with answerer:
                assert answerer.recv(1) == b""
            parent.communicate()
        assert parent.returncode == 0


def children_of(horde: HordeProcesses, name: str) -> list[psutil.Process]:
    """The children of a task process."""
    return psutil.Process(horde.running[name].pid).children()


def ask(horde: HordeProcesses) -> None:
    """Ask for a completion, for which every task process has to work."""
    horde.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello."}])


def ends(process: psutil.Process) -> set[tuple[str, int]]:
    """This side of a process's TCP connections."""
    return {each.laddr for each in process.net_connections("tcp")}


@pytest.mark.parametrize("name", ["verdict", "tasks"])
def test_a_child_that_replaces_another_has_no_connection_of_its_parent(horde: HordeProcesses, name: str) -> None:
    ask(horde)
    horde.require_sound()
    before = children_of(horde, name)
    before[0].kill()

    def new() -> list[psutil.Process]:
        return [child for child in children_of(horde, name) if child not in before]

    wait_until(lambda: bool(new()), 20, "no child takes its place")
    parent, replacement = psutil.Process(horde.running[name].pid), new()[0]
    ask(horde)
    wait_until(lambda: not ends(replacement) & ends(parent), 10, "it keeps its parent's")
