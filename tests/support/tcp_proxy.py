"""A TCP proxy between the horde and a service, which can stall or cut what goes through it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

NO_ROOM = b"<Error><Code>InsufficientStorage</Code><Message>There is no room.</Message></Error>"


class TcpProxy:
    """Forwards connections to a service's URL."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        self._full = False
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Hold every byte back while the block runs."""
        self._flowing.clear()
        try:
            yield
        finally:
            self._flowing.set()

    @contextmanager
    def down(self) -> Iterator[None]:
        """Break every connection off while the block runs."""
        self._refusing = True
        try:
            yield
        finally:
            self._refusing = False

    @contextmanager
    def full(self) -> Iterator[None]:
        """Answer every upload as an S3 without room does, while the block runs."""
        self._full = True
        try:
            yield
        finally:
            self._full = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        self._flowing.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._flowing.wait()
        if self._refusing:
            client.close()
            return
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.close()
            return
        threading.Thread(target=self._pump, args=(client, server), daemon=True).start()
        self._pump(server, client)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            source.settimeout(None)
            while piece := source.recv(65536):
                self._flowing.wait()
                if self._refusing:
                    break
                if self._full and piece.startswith(b"PUT "):
                    self._refuse_upload(source)
                    break
                target.sendall(piece)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    @staticmethod
    def _refuse_upload(client: socket.socket) -> None:
        """Answer, and read on until the client has left: a close before that would cut the answer off."""
        head = b"HTTP/1.1 507 Insufficient Storage\r\nContent-Type: application/xml\r\nConnection: close\r\n"
        client.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(NO_ROOM), NO_ROOM))
        client.shutdown(socket.SHUT_WR)
        client.settimeout(5)
        while client.recv(65536):
            continue
