"""The gate in front of everything."""

import asyncio
from typing import Any

import pytest

from front.drain import Drain
from front.gate import Gate, GateLimits, canonical_path
from front.metrics import FrontMetrics


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1//chat/completions/", "/v1/chat/completions"),
        ("//v1/models", "/v1/models"),
        ("/v1/v1/v1/models", "/v1/models"),
        ("/models/org/name", "/v1/models/org/name"),
        ("/chat", "/chat"),
        ("/api/v2//x/", "/api/v2//x/"),
        ("/", "/"),
        ("/v1", "/v1"),
        ("/modelsx", "/modelsx"),
        ("/chat/completions/", "/v1/chat/completions"),
    ],
)
def test_openai_paths_are_mended_and_others_left(path: str, canonical: str) -> None:
    assert canonical_path(path) == canonical


def scope(path: str = "/v1/x") -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "client": ("127.0.0.1", 1),
        "state": {},
    }


async def test_a_client_that_takes_nothing_is_dropped_and_the_exchange_closed() -> None:
    closed: list[bool] = []

    async def app(seen: Any, _receive: Any, send: Any) -> None:
        seen["state"]["exchange"].on_close(lambda: closed.append(True))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def stuck(_message: Any) -> None:
        await asyncio.Event().wait()

    gate: Any = Gate(app, GateLimits(100, 200, 0, send_seconds=0.05), Drain(), FrontMetrics())
    with pytest.raises(TimeoutError):
        await gate(scope(), None, stuck)
    assert closed == [True]


async def test_a_body_is_handed_on_up_to_the_limit_and_read_to_its_end() -> None:
    parts = iter([b"x" * 60, b"x" * 60, b"x" * 60, b""])
    seen: list[Any] = []

    async def receive() -> Any:
        body = next(parts)
        return {"type": "http.request", "body": body, "more_body": bool(body)}

    async def app(at: Any, bounded: Any, _send: Any) -> None:
        seen.extend([await bounded(), await bounded(), at["state"]["exchange"].body_too_large])

    gate: Any = Gate(app, GateLimits(100, 200, 0), Drain(), FrontMetrics())
    await gate(scope(), receive, None)
    assert [len(message["body"]) for message in seen[:2]] == [60, 0]
    assert seen[1]["more_body"] is False
    assert seen[2] is True
    assert list(parts) == []


async def test_a_failing_closer_does_not_keep_the_others_from_running() -> None:
    closed: list[str] = []

    async def app(at: Any, _receive: Any, _send: Any) -> None:
        exchange = at["state"]["exchange"]
        exchange.on_close(lambda: closed.append("first"))
        exchange.on_close(lambda: closed.remove("never there"))

    gate: Any = Gate(app, GateLimits(100, 200, 0), Drain(), FrontMetrics())
    await gate(scope(), None, None)
    assert closed == ["first"]
