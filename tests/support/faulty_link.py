"""A small TCP proxy before a real native API that spoils one submit of each client as it is told.

It knows a client's submit by the `X-Request-Id` that the front passes on, and spoils its first
try alone. Everything else goes through whole. Each of its ports is one root.
"""

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

SUBMIT = b"POST /api/v2/generate/chat/async "
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_REQUEST_ID = re.compile(rb"\r\nx-request-id: *([^\r]+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
Place = Literal["request", "response", "instead"]

_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the first tries of a submit, `times` of them.

    `request`: the root gets the first `at` bytes and the connection breaks. `response`: the front
    gets the first `at` bytes of the answer. `instead`: the front gets these bytes, `reaches` says
    whether the root got the submit. `hold`: the answer comes so many seconds late.
    """

    where: Place
    at: int = 0
    reset: bool = True
    instead: bytes = b""
    reaches: bool = True
    hold: float = 0.0
    times: int = 1


@dataclass
class FaultyLink:
    """The proxy, while it runs."""

    native_port: int
    faults: dict[str, Fault] = field(default_factory=dict)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes of the request and of the answer of a submit that went through whole."""
    tries: dict[str, int] = field(default_factory=dict)
    _ports: list[int] = field(default_factory=list)
    _serving: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def urls(self) -> str:
        """The roots, as NATIVE_URLS takes them."""
        return ",".join(f"http://127.0.0.1:{port}" for port in self._ports)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the front."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await _message(reader)
                named = _REQUEST_ID.search(request)
                call_id = named[1].decode() if named and request.startswith(SUBMIT) else ""
                if not await self._pass_on(call_id, request, writer):
                    break
        writer.close()
        self._serving.discard(task)

    async def end(self) -> None:
        """Let the connections of a front that has gone come to their end."""
        if self._serving:
            await asyncio.wait(self._serving, timeout=10)

    async def _pass_on(self, call_id: str, request: bytes, writer: asyncio.StreamWriter) -> bool:
        """Pass one exchange on, or spoil it. Whether the connection goes on."""
        fault = self._fault_of(call_id)
        if fault is None:
            answer = await self._asked(request)
            self.sizes[call_id] = (len(request), len(answer))
            writer.write(answer)
            await writer.drain()
            return True
        if fault.where == "request":
            await self._cut_off(request[: fault.at], fault)
        elif fault.reaches:
            answer = await self._asked(request)
            await asyncio.sleep(fault.hold)
            writer.write(answer[: fault.at] if fault.where == "response" else fault.instead)
        else:
            writer.write(fault.instead)
        _end(writer, reset=fault.reset)
        return False

    def _fault_of(self, call_id: str) -> Fault | None:
        fault = self.faults.get(call_id)
        self.tries[call_id] = self.tries.get(call_id, 0) + 1
        if fault is not None and self.tries[call_id] == fault.times:
            del self.faults[call_id]
        return fault

    async def _asked(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.native_port)
        try:
            writer.write(request)
            return await _message(reader)
        finally:
            writer.close()

    async def _cut_off(self, part: bytes, fault: Fault) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", self.native_port)
        writer.write(part)
        await writer.drain()
        _end(writer, reset=fault.reset)


@asynccontextmanager
async def faulty_link(native_port: int, roots: int = 2) -> AsyncIterator[FaultyLink]:
    """A proxy with several ports."""
    link = FaultyLink(native_port)
    servers = [await asyncio.start_server(link.serve, "127.0.0.1", 0, limit=2**20) for _ in range(roots)]
    link._ports.extend(server.sockets[0].getsockname()[1] for server in servers)
    try:
        yield link
    finally:
        for server in servers:
            server.close()
        await link.end()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """One whole HTTP message as it came."""
    head = await reader.readuntil(b"\r\n\r\n")
    if _CHUNKED.search(head):
        return head + await reader.readuntil(b"0\r\n\r\n")
    length = _LENGTH.search(head)
    return head + (await reader.readexactly(int(length[1])) if length else b"")


def _end(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    """End a connection once what was written is sent: by a reset, or as if all had been said."""
    if reset:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.close()
