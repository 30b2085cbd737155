"""The port map and the check for taken ports."""

import os
import re
import socket
from dataclasses import asdict

import pytest

from launcher.errors import LauncherError
from launcher.ports import PortMap, check_free
from tests.support.services import free_port


def test_no_two_processes_share_a_port() -> None:
    ports = asdict(PortMap.from_base(7000))
    numbers = [*ports.pop("metrics").values(), *ports.values()]
    assert len(set(numbers)) == len(numbers)


def test_free_ports_pass() -> None:
    check_free({free_port(): "the front"})


def test_a_taken_port_is_named_with_who_wants_it_and_who_has_it() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        expected = f"Port {port}, wanted by the front, is taken by .* \\(process {os.getpid()}\\)"
        with pytest.raises(LauncherError, match=expected) as raised:
            check_free({port: "the front", free_port(): "Flower"})
    assert "Flower" not in str(raised.value)
    assert re.search("HORDE_PORT_BASE", str(raised.value))
