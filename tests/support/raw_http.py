"""Bytes that are almost HTTP, and what a front may say to them.

`raw_request` makes a request of parts that fit and parts that do not, then damages some of its
bytes; `complaint` says what is wrong with an answer.
"""

import asyncio
import random
import re
from collections.abc import Callable

import orjson

CHAT = b"/v1/chat/completions"
GOOD_BODY = orjson.dumps({"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]})
ENVELOPE = {"message", "type", "param", "code", "metadata"}
FIRST_BYTE_SECONDS = 2.0
SILENCE_SECONDS = 0.3

METHODS = (
    b"GET",
    b"POST",
    b"POST",
    b"POST",
    b"HEAD",
    b"OPTIONS",
    b"DELETE",
    b"PUT",
    b"TRACE",
    b"CONNECT",
    b"get",
    b"X" * 300,
)
TARGETS = (
    CHAT, CHAT, CHAT, b"/v1//chat/completions/", b"//v1/chat/completions", b"/v1/v1/models", b"/v1/models",
    b"/v1/models/a%2Fb", b"/v1/models/%00%ff", b"/v1/models/../../metrics", b"/v1/responses", b"/", b"/healthz",
    b"/openapi.json", b"/api/v2/status/heartbeat", b"/api/v2/../internal/statuses", b"/internal/statuses",
    b"/v2/generate/text/pop", b"*", b"http://evil/v1/models", b"?", b"/v1/models?apikey=x", b"/" + b"a/" * 900,
)  # fmt: skip
HEADERS = (
    b"Host: x", b"Authorization: Bearer k", b"Authorization: Basic \xff", b"Authorization: Bearer ",
    b"apikey: 0000000000",
    b"Content-Type: application/json", b"Content-Type: text/plain; charset=utf-16", b"Content-Encoding: gzip",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", b"Expect: 100-continue", b"Connection: close",
    b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: websocket", b"Upgrade: h2c", b"X-Request-Id: <script>",
    b"X-Forwarded-For: 1.1.1.1, \x7f", b"Content-Length: -1", b"Content-Length: 99999999999999", b"Range: bytes=0-",
    b"Proxied-For: 1.2.3.4", b"Front-Authorization: x", b"Cookie: " + b"c" * 5000, b"No-Colon",
    b": empty", b" folded: x",
    b"Origin: null", b"Access-Control-Request-Headers: a\x00b",
)  # fmt: skip
BODIES = (
    GOOD_BODY, GOOD_BODY, GOOD_BODY, b"", b"{", b"null", b"[]", b"\xef\xbb\xbf" + GOOD_BODY, b"\xff\xfe{}", b"[" * 3000,
    b'{"model":"demo-8b","model":"x","messages":[]}',
    b'{"model":"demo-8b","messages":[{"role":"user","content":"\\ud800"}]}',
    GOOD_BODY[:-1] + b',"stream":true}', GOOD_BODY[:-1] + b',"temperature":1e999}', GOOD_BODY[:-1] + b',"n":2}',
    GOOD_BODY[:-1] + b',"stop":["a","b"],"seed":7,"metadata":{"a":"b"}}', b"x" * 120_000,
)  # fmt: skip


def raw_request(chance: random.Random) -> bytes:
    """One request, more or less."""
    body = chance.choice(BODIES)
    headers = [b"Host: x", *chance.sample(HEADERS, chance.choice((0, 0, 1, 1, 2, 3)))]
    if chance.random() < 0.85 and b"Transfer-Encoding: chunked" not in headers:
        headers.append(b"Content-Length: %d" % (len(body) + chance.choice((0,) * 12 + (-1, 1, 5))))
    elif chance.random() < 0.7:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    version = chance.choice((b"HTTP/1.1",) * 8 + (b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9.9", b""))
    chance.shuffle(headers)
    head = b"%s %s %s\r\n" % (chance.choice(METHODS), chance.choice(TARGETS), version)
    raw = head + b"\r\n".join(headers) + b"\r\n\r\n" + body
    return _damaged(raw, chance) if chance.random() < 0.5 else raw


def _damaged(raw: bytes, chance: random.Random) -> bytes:
    data = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(data) or 1)
        damage: Callable[[], object] = chance.choice(
            (
                lambda at=at: data.__setitem__(slice(at, at + 1), bytes([chance.randrange(256)])),
                lambda at=at: data.__delitem__(slice(at, at + chance.randrange(1, 9))),
                lambda at=at: data.__setitem__(
                    slice(at, at), chance.choice((b"\r\n", b"\x00", b" ", b"GET / HTTP/1.1\r\n"))
                ),
                lambda at=at: data.__delitem__(slice(at, None)),
            )
        )
        damage()
    return bytes(data)


async def exchange(host: str, port: int, raw: bytes, chance: random.Random) -> bytes:
    """Send the bytes, in one piece or two, and read until the front closes or says nothing more."""
    reader, writer = await asyncio.open_connection(host, port)
    answer = b""
    try:
        cut = chance.randrange(len(raw) + 1) if chance.random() < 0.3 else len(raw)
        writer.write(raw[:cut])
        await writer.drain()
        writer.write(raw[cut:])
        await writer.drain()
        while True:
            async with asyncio.timeout(SILENCE_SECONDS if answer else FIRST_BYTE_SECONDS):
                part = await reader.read(65536)
            if not part:
                break
            answer += part
    except (TimeoutError, ConnectionError):
        pass
    writer.close()
    return answer


def complaint(answer: bytes) -> str | None:
    """What is wrong with the first answer; None for one that may be, or for none at all."""
    if not answer or answer.startswith(b"HTTP/1.1 100"):
        return None
    status = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    if status is None:
        return "no status line"
    code = int(status[1])
    if code < 500:
        return None
    _, _, body = answer.partition(b"\r\n\r\n")
    if code in {502, 503} and _is_named(body):
        return None
    return f"status {code}"


def _is_named(body: bytes) -> bool:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and (set(value.get("error", {})) == ENVELOPE or {"message", "rc"} <= set(value))
