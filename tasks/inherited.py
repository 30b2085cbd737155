"""What a child of a task process inherits from its parent, and has no use for."""

import os
import socket
from contextlib import suppress
from pathlib import Path

OPEN_FILES = Path("/dev/fd")


def leave_inherited_connections() -> None:
    """Give up this process's copies of all network sockets; for a child that has opened none itself yet.

    A child that replaces another is forked from a parent that talks to the broker: with its copies the
    broker's and PostgreSQL's connections would stay open after the parent has ended. The numbers of the
    files stay taken, so that what the parent's objects close here later is nothing of ours.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(file.name) for file in OPEN_FILES.iterdir()]:
        if _is_network_socket(number):
            os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


def _is_network_socket(number: int) -> bool:
    with suppress(OSError), socket.socket(fileno=os.dup(number)) as copy:
        return copy.family in (socket.AF_INET, socket.AF_INET6)
    return False
