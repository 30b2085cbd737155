"""Framing of server-sent events as OpenAI's clients read them (contract reference 4.3).

Only `data:` lines with one line of JSON each, and comments. Never `id:`, `event:`
or `retry:`: openai-python fails on each of them.
"""

from front.wire import encode

DONE = b"data: [DONE]\n\n"
"""What ends every stream."""

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment: says nothing to the client and keeps the connection open."""

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}
"""Headers that keep proxies from gathering events."""


def event(payload: object) -> bytes:
    """One event."""
    return frame(encode(payload))


def frame(data: bytes) -> bytes:
    """One event of encoded JSON."""
    return b"data: " + data + b"\n\n"
