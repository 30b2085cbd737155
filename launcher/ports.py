"""Which port every process of a horde gets, and whether it is free."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import psutil

from launcher.errors import LauncherError

METRICS_OFFSETS = {"verdict": 10, "tasks": 11, "media": 12, "beat": 13, "fetch": 14}
"""Processes without HTTP of their own, which serve health and metrics on a port apart."""


@dataclass(frozen=True, slots=True)
class PortMap:
    """The ports of one horde."""

    front: int
    native: int
    flower: int
    postgres: int
    redis: int
    s3: int
    backend: int
    metrics: Mapping[str, int]

    @classmethod
    def from_base(cls, base: int) -> Self:
        """Lay the ports out in one block, so that two hordes run side by side."""
        return cls(
            front=base,
            native=base + 1,
            flower=base + 2,
            postgres=base + 3,
            redis=base + 4,
            s3=base + 5,
            backend=base + 6,
            metrics={name: base + offset for name, offset in METRICS_OFFSETS.items()},
        )


def check_free(wanted: Mapping[int, str]) -> None:
    """Make sure that nothing listens on any of these ports; the values say who wants them.

    Raises LauncherError that names every taken port.
    """
    taken = [f"Port {port}, wanted by {who}, is taken{_holder(port)}." for port, who in wanted.items() if _taken(port)]
    if taken:
        advice = "Stop what holds it, or move this horde with HORDE_PORT_BASE."
        raise LauncherError("\n".join([*taken, advice]))


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _holder(port: int) -> str:
    """Who listens there, as far as this user may know."""
    try:
        for connection in psutil.net_connections("tcp"):
            address = connection.laddr
            if not address or address.port != port or connection.status != psutil.CONN_LISTEN:
                continue
            if connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (process {connection.pid})"
    except psutil.Error:
        pass
    return ""
