"""The front speaks HTTP/1.1 alone (reliability B8, decision 0088)."""

import asyncio

import pytest
from yarl import URL

from tests.front.process.front_process import FrontProcess

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS_FRAME = bytes.fromhex("000000040000000000")


async def answer_to(front: FrontProcess, raw: bytes) -> bytes:
    """Everything that the front says until it closes the connection."""
    reader, writer = await asyncio.open_connection(URL(front.url).host, URL(front.url).port)
    writer.write(raw)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("raw", [PREFACE + SETTINGS_FRAME, PREFACE])
async def test_a_client_that_begins_with_http_2_is_refused_in_the_envelope(front: FrontProcess, raw: bytes) -> None:
    answer = await answer_to(front, raw)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"type":"invalid_request_error"' in answer


async def test_an_offer_to_go_over_to_http_2_is_passed_over(front: FrontProcess) -> None:
    offer = (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    )
    answer = await answer_to(front, offer)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"alive" in answer
