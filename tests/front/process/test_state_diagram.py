"""The source's state diagram of a request on the front, edge by edge, each test named by its edge.

Beside the answer each test looks at what the horde is left with: nothing was submitted before
`Submitted`; after it, every end but an answer and a fault cancels.

| edge | more tests of it |
| --- | --- |
| start to Refused | test_http.py: the caps, and a known key as a source of its own |
| Admitted to nothing, by a client that left | test_bodies.py: while it waits for its place |
| Admitted to Refused | test_error_table.py, test_http.py: every code; test_bodies.py: places |
| Validated to Submitted | tests/chaos/test_lost_submits.py: lost at every byte |
| Validated to Refused | test_error_table.py: every code |
| Submitted to Cancelled | test_error_table.py, test_failures.py |
| Waiting to Waiting | test_signals.py, test_streaming.py |
| Waiting to Cancelled | test_error_table.py, test_failures.py; test_drain.py: the process stops |
"""

import asyncio
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from yarl import URL

from app.domain.redis_keys import ChatEvent
from tests.front.process.conftest import QUICK, Signals
from tests.front.process.front_process import FrontProcess, running_front
from tests.front.process.scripted_native import SUBMIT, ScriptedNative, refusal
from tests.front.process.test_failures import GAP, LIMIT, lost, not_ours
from tests.front.process.waiting import eventually
from tests.support.services import RunningService

PATH = "/v1/chat/completions"
STATUS = "/api/v2/generate/chat/status/"
BODY: dict[str, Any] = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}]}


class Walk:
    """One request on its way through the diagram."""

    def __init__(self, front: FrontProcess, native: ScriptedNative, signals: Signals) -> None:
        self.front, self.native, self.signals = front, native, signals
        self._task: asyncio.Task[tuple[int, dict[str, Any]]] | None = None

    def begin(self, **more: Any) -> None:
        """Ask."""
        self._task = asyncio.create_task(self._ask(BODY | more))

    async def ends(self, status: int, code: str | None = None) -> None:
        """Require this answer."""
        assert self._task is not None
        seen, body = await self._task
        assert (seen, body.get("error", {}).get("code")) == (status, code)

    async def submitted(self) -> str:
        """The id under which the horde has the request."""
        return await self.native.submitted()

    async def leaves(self) -> None:
        """The client goes."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def is_cancelled(self) -> None:
        """Require that the horde is told."""
        await self.native.called("DELETE", STATUS + await self.submitted(), seconds=5)

    def is_not_cancelled(self) -> None:
        """Require that the horde keeps the request as it is."""
        ids = [call.headers["horde-request-id"] for call in self.native.calls("POST", SUBMIT)]
        assert [call for one in ids for call in self.native.calls("DELETE", STATUS + one)] == []

    def is_nowhere(self) -> None:
        """Require that the horde never heard of it."""
        assert self.native.calls("POST", SUBMIT) == []

    async def _ask(self, body: Any) -> tuple[int, dict[str, Any]]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.front.url + PATH, json=body) as response,
        ):
            return response.status, await response.json()


@pytest.fixture
def walk(front: FrontProcess, native: ScriptedNative, signals: Signals) -> Walk:
    return Walk(front, native, signals)


async def test_start_to_admitted_to_validated_to_submitted_to_waiting_to_answered(walk: Walk) -> None:
    walk.begin()
    request_id = await walk.submitted()
    walk.native.finish(request_id)
    walk.signals.chat(request_id)
    await walk.ends(200)
    walk.is_not_cancelled()


async def test_start_to_refused_by_the_cap_of_a_source(walk: Walk) -> None:
    walks = [Walk(walk.front, walk.native, walk.signals) for _ in range(int(QUICK["FRONT_SOURCE_LIMIT"]))]
    for one in walks:
        one.begin()
    await walk.native.called("POST", SUBMIT, len(walks))
    walk.begin()
    await walk.ends(503, "FrontAtCapacity")
    assert len(walk.native.calls("POST", SUBMIT)) == len(walks)
    for one in walks:
        await one.leaves()
    await eventually(lambda: len(walk.native.cancelled()) == len(walks), "some are left in the queue")


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"n": 2}, 400, "UnsupportedChatParameter"),
        ({"model": "a:b"}, 404, "model_not_found"),
        ({"user": "x" * 120_000}, 413, "PayloadTooLarge"),
    ],
)
async def test_admitted_to_refused(walk: Walk, more: dict[str, Any], status: int, code: str) -> None:
    walk.begin(**more)
    await walk.ends(status, code)
    walk.is_nowhere()


async def test_admitted_to_refused_by_a_body_that_does_not_come(walk: Walk) -> None:
    reader, writer = await asyncio.open_connection(URL(walk.front.url).host, URL(walk.front.url).port)
    writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{" % PATH.encode())
    async with asyncio.timeout(10):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408")
    assert orjson.loads(body)["error"]["code"] == "BodyTooSlow"
    walk.is_nowhere()
    writer.close()


@pytest.fixture
def patient(native: ScriptedNative, valkey: RunningService, tmp_path: Path) -> Iterator[FrontProcess]:
    """A front that waits for a body longer than any test does."""
    settings = {**QUICK, "BODY_READ_SECONDS": "600", "BODY_LIMIT_BYTES": "1000000"}
    with running_front(tmp_path, native.url, valkey.service.url, **settings) as front:
        yield front


@pytest.mark.parametrize(
    ("length", "begun"),
    [
        ("Content-Length: 100", b"{"),
        ("Content-Length: 900000", b"x" * 400_000),
        ("Transfer-Encoding: chunked", b"1\r\n{"),
    ],
    ids=["small", "large", "chunked"],
)
async def test_admitted_to_nothing_by_a_client_that_left_while_its_body_was_read(
    patient: FrontProcess, native: ScriptedNative, length: str, begun: bytes
) -> None:
    _, writer = await asyncio.open_connection(URL(patient.url).host, URL(patient.url).port)
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode() + begun)
    await writer.drain()
    await eventually(lambda: open_requests(patient) == 1, "the call is not admitted")
    writer.close()
    await eventually(lambda: open_requests(patient) == 0, "the call keeps its place")
    assert native.calls("POST", SUBMIT) == []


def open_requests(front: FrontProcess) -> float:
    """Places taken in a front's admission."""
    with urllib.request.urlopen(f"{front.url}/metrics", timeout=5) as response:  # noqa: S310 - a URL of ours
        line = next(one for one in response if one.startswith(b"horde_front_open_requests "))
    return float(line.split()[1])


async def test_validated_to_refused_by_the_horde(walk: Walk) -> None:
    walk.native.script(f"POST {SUBMIT}", refusal(429, "TooManyPrompts"))
    walk.begin()
    await walk.ends(429, "TooManyPrompts")
    walk.is_not_cancelled()


async def test_validated_to_refused_by_the_horde_that_cannot_be_reached(walk: Walk) -> None:
    walk.native.script(f"POST {SUBMIT}", not_ours(502), lost(), not_ours(504))
    walk.begin()
    await walk.ends(502, "HordeUnreachable")
    await walk.is_cancelled()


async def test_validated_to_submitted_by_a_repeat_under_the_same_key(walk: Walk) -> None:
    walk.native.script(f"POST {SUBMIT}", lost())
    walk.begin()
    first, second = await walk.native.called("POST", SUBMIT, 2)
    assert first.headers["operation-key"] == second.headers["operation-key"]
    request_id = await walk.submitted()
    walk.native.finish(request_id)
    walk.signals.chat(request_id)
    await walk.ends(200)
    walk.is_not_cancelled()


@pytest.mark.parametrize(
    ("initial", "more", "status", "code"),
    [
        ({"declaration_gap": GAP}, {}, 404, "no_worker_supports_features"),
        ({"limits_gap": LIMIT}, {"stream": True}, 400, "no_worker_supports_limit"),
        ({"eligible_threads": 0}, {"horde": {"availability_mode": "fail_fast"}}, 503, "queue_unavailable"),
    ],
    ids=["declaration-gap", "limits-gap", "fail-fast"],
)
async def test_submitted_to_cancelled(
    walk: Walk, initial: dict[str, Any], more: dict[str, Any], status: int, code: str
) -> None:
    walk.native.initial = initial
    walk.begin(**more)
    await walk.ends(status, code)
    await walk.is_cancelled()


@pytest.mark.parametrize("stream", [False, True])
async def test_submitted_to_cancelled_by_a_client_that_left_while_its_images_were_prepared(
    walk: Walk, stream: bool
) -> None:
    walk.native.initial = {"state": "preparing", "waiting": 0}
    walk.begin(stream=stream)
    await walk.submitted()
    await walk.leaves()
    await walk.is_cancelled()


async def test_waiting_to_waiting_by_a_signal_that_brings_no_end(walk: Walk) -> None:
    walk.begin()
    request_id = await walk.submitted()
    walk.native.set_status(request_id, state="processing", processing=1, waiting=0)
    walk.signals.chat(request_id, ChatEvent.GENERATION)
    await walk.native.called("GET", STATUS + request_id)
    walk.native.finish(request_id)
    walk.signals.chat(request_id)
    await walk.ends(200)
    assert len(walk.native.calls("GET", STATUS + request_id)) == 2


@pytest.mark.parametrize(
    ("initial", "later", "status", "code", "is_told"),
    [
        ({}, None, 408, "DeadlineExceeded", True),
        ({"is_possible": False, "eligible_threads": 0}, None, 503, "no_eligible_worker", True),
        ({}, {"state": "done", "finished": 1}, 502, "NoGeneration", False),
    ],
    ids=["deadline", "grace", "no-generation"],
)
async def test_waiting_to_cancelled(
    walk: Walk, initial: dict[str, Any], later: dict[str, Any] | None, status: int, code: str, is_told: bool
) -> None:
    walk.native.initial = initial
    walk.begin()
    request_id = await walk.submitted()
    if later is not None:
        walk.native.set_status(request_id, **later)
        walk.signals.chat(request_id)
    await walk.ends(status, code)
    if is_told:
        await walk.is_cancelled()
    else:
        walk.is_not_cancelled()


@pytest.mark.parametrize("stream", [False, True])
async def test_waiting_to_cancelled_by_a_client_that_left(walk: Walk, stream: bool) -> None:
    walk.begin(stream=stream)
    await walk.submitted()
    await walk.leaves()
    await walk.is_cancelled()


async def test_waiting_to_faulted(walk: Walk) -> None:
    walk.begin()
    request_id = await walk.submitted()
    walk.native.set_status(request_id, state="faulted", fault={"rc": "backend_error", "message": "m", "param": None})
    walk.signals.chat(request_id)
    await walk.ends(502, "ChatRequestFaulted")
    walk.is_not_cancelled()
