"""The front's process: `python -m front.server` (front F6, reliability B1-B3).

It owns its signals. Hypercorn is told to stop only when every exchange has ended:
its own shutdown hangs on open streams, and closes pools under them.
"""

import asyncio
import logging
import signal
import socket
import sys

from hypercorn.config import Config

from config.logging import configure_logging
from config.settings import FrontSettings, SettingsError, load_front_settings
from front.context import Front, build_front, close_front, open_front
from front.factory import create_app
from front.serving import serve

log = logging.getLogger(__name__)

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75.0
"""Longer than proxies keep an idle connection, so that never we close one that is being used."""

REQUESTS_PER_CONNECTION = 10_000
"""After that a connection is closed: a brake on clients that open and reset streams in a loop."""

STALLED_MILLISECONDS = 45_000
"""A connection whose client takes nothing for this long is cut by the kernel, with what is still buffered for it."""

END_SECONDS = 2.0
"""For saying goodbye once the time for finishing is over."""

CLOSE_SECONDS = 1.0


def main() -> int:
    """Serve until SIGTERM or SIGINT. The exit code."""
    try:
        settings = load_front_settings()
    except SettingsError as error:
        sys.stderr.write(f"The settings cannot be used:\n{error}\n")
        return 2
    configure_logging(settings, "front")
    try:
        listener = listen(settings)
    except OSError as error:
        port = settings.port or settings.horde_front_port
        sys.stderr.write(
            f"Cannot listen on {settings.horde_bind_host}:{port}: {error.strerror}. Set HORDE_FRONT_PORT.\n"
        )
        return 1
    asyncio.run(run(build_front(settings), listener))
    return 0


def listen(settings: FrontSettings) -> socket.socket:
    """The listening socket.

    Raises OSError when the port is taken.
    """
    host, port = settings.horde_bind_host, settings.port or settings.horde_front_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_MILLISECONDS)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


async def run(front: Front, listener: socket.socket) -> None:
    """Serve, and stop without losing anybody."""
    stop, shut, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    open_front(front)
    serving = loop.create_task(serve(create_app(front), server_config(listener), shut, closed))
    stopping = loop.create_task(stop.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not serving.done():
        if isinstance(front.settings.proxies, tuple):
            # A proxy that we know goes to the next front when this one takes no connection: that is safe for any call.
            front.drain.at_start(shut.set)
        await drain(front)
    closed.set()
    stopping.cancel()
    await asyncio.wait((serving,), timeout=CLOSE_SECONDS * 2)
    await close_front(front, END_SECONDS)
    if serving.done():
        serving.result()
    log.info("stopped")


async def drain(front: Front) -> None:
    """Let open exchanges finish, then end the rest."""
    log.info("stopping: %d requests are open", front.admission.open)
    front.drain.start()
    if not await front.drain.wait_idle(front.settings.drain_seconds):
        front.drain.end()
        await front.drain.wait_idle(END_SECONDS)


def server_config(listener: socket.socket) -> Config:
    """Hypercorn's settings."""
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.backlog = BACKLOG
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.keep_alive_max_requests = REQUESTS_PER_CONNECTION
    config.graceful_timeout = CLOSE_SECONDS
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    return config


if __name__ == "__main__":
    sys.exit(main())
