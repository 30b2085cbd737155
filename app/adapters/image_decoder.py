"""Decodes images in a child process that may die: by its memory limit, its processor time, or a kill (images I4)."""

import contextlib
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from select import select
from threading import Lock
from time import monotonic
from typing import IO

import structlog
from prometheus_client import Counter, Histogram

from app.adapters.decoder_protocol import BAD_SHAPE, BROKEN, JPEG, LENGTH, TOO_LARGE
from config.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
MEBIBYTE = 2**20
PIPE_BYTES = 2**20
JOBS_OF_A_CHILD = 1000
"""A child is replaced after so many, in case a codec leaks."""

IMAGES_DECODED = Counter("horde_images_decoded", "Images that the decoder was given.", ["outcome"])
DECODE_SECONDS = Histogram("horde_image_decode_seconds", "Time to decode and normalise an image.")
_OUTCOMES = {
    JPEG: "done",
    TOO_LARGE: "too_large",
    BAD_SHAPE: "bad_shape",
    BROKEN: "broken",
}

log = structlog.get_logger(__name__)


class DecoderDied(Exception):
    """The child died or took too long over an image; the next image gets a new one."""


class BadImage(Exception):
    """The image cannot be used. `too_large` and `bad_shape` say in which way, when it is not broken."""

    def __init__(self, reason: str, *, too_large: bool = False, bad_shape: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.too_large = too_large
        self.bad_shape = bad_shape


def decode_seconds(settings: Settings) -> float:
    """Longest that one image is waited for: a busy machine gives its child half of a core at times."""
    return 2.0 * settings.image_decoder_seconds + 1


class ImageDecoder:
    """One child at a time, started when it is needed and kept for the next image; threads take turns."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._jobs = 0

    def normalised(self, data: bytes) -> bytes:
        """Return the image as the JPEG that is stored.

        Raises BadImage, or DecoderDied when the child did not survive it.
        """
        with self._turn:
            answer = self._answer(data)
        kind = answer[:1]
        IMAGES_DECODED.labels(_OUTCOMES[kind]).inc()
        if kind == JPEG:
            return answer[1:]
        raise BadImage(
            answer[1:].decode(),
            too_large=kind == TOO_LARGE,
            bad_shape=kind == BAD_SHAPE,
        )

    def _answer(self, data: bytes) -> bytes:
        child = self._ready_child()
        self._jobs += 1
        try:
            with DECODE_SECONDS.time():
                return self._exchange(child, data)
        except BaseException as error:
            # An answer that was not read to its end would be taken for the next image's.
            self.close()
            if not isinstance(error, OSError):
                raise
            IMAGES_DECODED.labels("died").inc()
            log.warning("decoder.died", error=type(error).__name__, size=len(data))
            raise DecoderDied from None

    def close(self) -> None:
        """End the child, whatever it does."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _ready_child(self) -> subprocess.Popen[bytes]:
        if self._jobs >= JOBS_OF_A_CHILD or (self._child is not None and self._child.poll() is not None):
            self.close()
        if self._child is None:
            self._child, self._jobs = self._started(), 0
        return self._child

    def _started(self) -> subprocess.Popen[bytes]:
        settings = self._settings
        limits = (
            settings.image_decoder_mebibytes * MEBIBYTE,
            settings.image_decoder_seconds,
            settings.image_pixel_limit,
            settings.image_longest_side,
        )
        child = subprocess.Popen(  # noqa: S603 - our own program, with numbers as its arguments
            [sys.executable, "-m", "app.adapters.decoder_child", *(str(limit) for limit in limits)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Two arenas instead of eight a core: each reserves address space, which is what is limited.
            env={"MALLOC_ARENA_MAX": "2", "PYTHONPATH": str(ROOT)},
            bufsize=0,
        )
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                with contextlib.suppress(OSError):
                    fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return child

    def _exchange(self, child: subprocess.Popen[bytes], data: bytes) -> bytes:
        """Hand the image over and wait for the answer.

        Raises OSError when the child ends, TimeoutError when it takes too long.
        """
        if child.stdin is None or child.stdout is None:
            raise OSError("the child has no pipes")
        deadline = monotonic() + decode_seconds(self._settings)
        _write(child.stdin, LENGTH.pack(len(data)), deadline)
        _write(child.stdin, data, deadline)
        length = LENGTH.unpack(_read(child.stdout, LENGTH.size, deadline))[0]
        return _read(child.stdout, length, deadline)


def _write(pipe: IO[bytes], data: bytes, deadline: float) -> None:
    rest = memoryview(data)
    while rest:
        _wait([], [pipe], deadline)
        rest = rest[pipe.write(rest) or 0 :]


def _read(pipe: IO[bytes], size: int, deadline: float) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        _wait([pipe], [], deadline)
        piece = pipe.read(min(size - len(pieces), PIPE_BYTES))
        if not piece:
            raise ConnectionResetError("the child ended")
        pieces += piece
    return bytes(pieces)


def _wait(readable: list[IO[bytes]], writable: list[IO[bytes]], deadline: float) -> None:
    ready = select(readable, writable, [], max(0.0, deadline - monotonic()))
    if not any(ready):
        raise TimeoutError
