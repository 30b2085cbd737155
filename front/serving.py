"""Hypercorn's connections, served under rules of our own (reliability B1, B5).

Hypercorn stops reading a connection while a request is in progress and more input waits: one
pipelined byte hides from it that the client has left. Here the connection is read on, within
a bound. Hypercorn's own serving is not used either: it waits for open connections before it
begins to count the time in which they must end.
"""

import asyncio
from itertools import chain

import h11
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import MAX_RECV, TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H2ProtocolAssumedError, H11Protocol
from hypercorn.typing import ASGIFramework, ConnectionState, LifespanState
from hypercorn.utils import parse_socket_addr, wrap_app

from front import errors

READ_AHEAD_BYTES = 64 * 1024
"""Input that is kept while a request is in progress. A client that sends more is read again after it."""

USUAL_SECONDS = 0.05
"""Within this time input is taken when nothing holds it up; only then is the connection read beside it."""


async def serve(app: ASGIFramework, config: Config, shut: asyncio.Event, stop: asyncio.Event) -> None:
    """Serve until `stop`, then let connections end within the configuration's graceful time.

    From `shut` on no new connection is taken; those that are open are served on.
    """
    loop, context, state = asyncio.get_running_loop(), WorkerContext(None), LifespanState()
    wrapped = wrap_app(app, config.wsgi_max_body_size, "asgi")
    open_connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            open_connections.add(task)
            task.add_done_callback(open_connections.discard)
        await Connection(wrapped, loop, config, context, state, reader, writer)

    listeners = config.create_sockets().insecure_sockets
    servers = [await asyncio.start_server(connected, sock=sock, backlog=config.backlog) for sock in listeners]
    shutting = loop.create_task(_close_when(shut, servers))
    try:
        await stop.wait()
    finally:
        shutting.cancel()
        for server in servers:
            server.close()
        await context.terminated.set()
        await _end(open_connections, config.graceful_timeout)


async def _close_when(shut: asyncio.Event, servers: list[asyncio.Server]) -> None:
    await shut.wait()
    for server in servers:
        server.close()


async def _end(connections: "set[asyncio.Task[None]]", seconds: float) -> None:
    if connections:
        await asyncio.wait(connections, timeout=seconds)
    for task in connections:
        task.cancel()
    if connections:
        await asyncio.wait(connections, timeout=seconds)


class Connection(TCPServer):
    """One client's connection, which is noticed to end whatever is going on, and then ends at once.

    Hypercorn lets a connection whose client has left live on for the keep-alive time.
    """

    _client_left = False

    async def run(self) -> None:
        """Serve the connection to its end."""
        socket = self.writer.get_extra_info("socket")
        try:
            client = parse_socket_addr(socket.family, socket.getpeername())
            server = parse_socket_addr(socket.family, socket.getsockname())
            async with TaskGroup(self.loop) as group:
                self._task_group = group
                state = ConnectionState(self.state)
                self.protocol = _Protocol(
                    self.app, self.config, self.context, group, state, False, client, server, self.protocol_send
                )
                await self.protocol.initiate()
                await self.idle_task.restart(group, self._idle_timeout)
                await self._read_data()
                self._client_left = True
                await self.idle_task.stop()
        except OSError:
            pass  # the client was gone before its address could be read
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        """Send, or note whether the connection is idle, which no longer matters once its client has left."""
        if not (self._client_left and isinstance(event, Updated)):
            await super().protocol_send(event)

    async def _read_data(self) -> None:
        data = await self._received()
        while data:
            handling = self.loop.create_task(self.protocol.handle(RawData(data)))
            try:
                data = await self._read_ahead(handling)
            finally:
                handling.cancel()
            data = data or await self._received()
        await self.protocol.handle(Closed())

    async def _read_ahead(self, handling: "asyncio.Task[None]") -> bytes:
        """Wait until `handling` is done, and read on meanwhile. What was read, for the next turn.

        When the client leaves meanwhile, what it waited for is ended, and with it `handling`.
        """
        await asyncio.wait((handling,), timeout=USUAL_SECONDS)
        ahead = b""
        while not handling.done() and len(ahead) < READ_AHEAD_BYTES:
            reading = self.loop.create_task(self._received())
            await asyncio.wait((handling, reading), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
                await asyncio.wait((reading,))
                break
            if not reading.result():
                await self.protocol.handle(Closed())
                return b""
            ahead += reading.result()
        await handling
        return ahead

    async def _received(self) -> bytes:
        """What the client sent next; nothing when it has left."""
        try:
            return await self.reader.read(MAX_RECV)
        except OSError:
            return b""


class _Protocol(ProtocolWrapper):
    """Hypercorn's choice of protocol, with answers of ours to what is no HTTP."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]
        self.protocol: _Http1 = _Http1(*parts)  # type: ignore[arg-type]

    async def handle(self, event: Event) -> None:
        """Take what the client sent. One that begins with HTTP/2 is told that nobody speaks it here (ADR 0088)."""
        try:
            await self.protocol.handle(event)
        except H2ProtocolAssumedError:
            await self.protocol.refuse(400)
            await self.send(Closed())


class _Http1(H11Protocol):
    """HTTP/1.1 and nothing else, whose refusals have a body too."""

    async def refuse(self, status_code: int) -> None:
        """Say that what came is no HTTP/1.1."""
        await self._send_error_response(status_code)

    async def _check_protocol(self, event: h11.Request) -> None:
        # Hypercorn would go over to HTTP/2 when it is offered; here the offer is passed over, as it may be.
        if event.method == b"PRI" and event.http_version == b"2.0":
            raise H2ProtocolAssumedError(b"")

    async def _send_error_response(self, status_code: int) -> None:
        problem = errors.not_http(400 if status_code >= 500 else status_code)
        body = problem.envelope()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await self._send_h11_event(
            h11.Response(status_code=problem.status, headers=list(chain(headers, self.config.response_headers("h11"))))
        )
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())
