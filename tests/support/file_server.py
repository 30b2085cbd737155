"""A web server on the loopback interface that serves what a test puts in it, and misbehaves as told."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

Answer = Callable[[socket.socket], None]


@dataclass
class FileServer:
    """Answers are bytes or functions that write to the connection; the requests are kept as they came."""

    answers: dict[str, bytes | Answer] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        """What IMAGE_FETCH_ALLOWED_HOSTS takes."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        """The URL of a path."""
        return f"http://{self.host}{path}"

    def serve(self, path: str, body: bytes, content_type: str = "image/png", **headers: str) -> str:
        """Serve a file; return its URL."""
        lines = {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}
        self.answers[path] = response(200, body, lines)
        return self.url(path)

    def redirect(self, path: str, location: str, status: int = 302) -> str:
        """Redirect a path; return its URL."""
        self.answers[path] = response(status, b"", {"Location": location, "Content-Length": "0"})
        return self.url(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
            self.requests.append(head.decode("latin-1"))
            path = head.split(b" ")[1].decode()
            answer = self.answers.get(path, response(404, b"", {"Content-Length": "0"}))
            if isinstance(answer, bytes):
                connection.sendall(answer)
            else:
                answer(connection)


def response(status: int, body: bytes, headers: dict[str, str]) -> bytes:
    """An HTTP answer in bytes."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}Connection: close\r\n\r\n".encode() + body


def dripping(head: bytes, piece: bytes = b"x", seconds: float = 0.05, times: int = 10_000) -> Answer:
    """An answer that sends a little at a time, for ever if it is not cut off."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        for _ in range(times):
            connection.sendall(piece)
            time.sleep(seconds)

    return answer
