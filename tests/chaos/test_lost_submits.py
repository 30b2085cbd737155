"""A submit that breaks at any byte between front and native: one request, one charge, the right answer.

The horde is real; only the line between its two faces is spoiled, once a submit.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest

from tests.front.process.front_process import running_front
from tests.support.asking import Asking
from tests.support.faulty_link import Fault, FaultyLink, Place, faulty_link
from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import wait_until

AT_ONCE = 12
SAMPLE = 20
HTML = b"<html><body>Bad Gateway</body></html>"


def said(status: str, body: bytes = HTML, kind: str = "text/html", length: int | None = None) -> bytes:
    """What something between the two says."""
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\r\n".encode() + body


INSTEAD = [
    said("502 Bad Gateway"),
    said("504 Gateway Timeout"),
    said("503 Service Unavailable", b""),
    said("500 Internal Server Error", b'{"message": "no code"}', "application/json"),
    said("429 Too Many Requests"),
    said("403 Forbidden"),
    said("404 Not Found"),
    said("302 Found"),
    said("200 OK"),
    said("202 Accepted", b'{"id": "x"}', "application/json"),
    said("202 Accepted", b'{"id": ', "application/json", length=4000),
    said("202 Accepted", b"", "application/json", length=400),
    b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{",
    b"\x00\xff not HTTP at all\r\n\r\n",
    b"",
]


class Client:
    """Asks through a front whose line to native is spoiled."""

    def __init__(self, horde: HordeProcesses, link: FaultyLink, front: str) -> None:
        self._horde = horde
        self._link = link
        self._front = front
        self._batch = uuid4().hex[:8]
        self._numbers = itertools.count()
        self.asked: list[str] = []

    async def sizes(self) -> tuple[int, int]:
        """Bytes of an unspoiled submit and of its answer."""
        async with aiohttp.ClientSession() as session:
            text = await self._ask(session, None)
        return self._link.sizes[text]

    async def ask_all(self, faults: Sequence[Fault]) -> None:
        """Ask once for each fault, some at a time, and require the right answer to each."""
        waiting = iter(faults)
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._ask_each(session, waiting))

    async def fail_all(self, faults: Sequence[Fault]) -> None:
        """Ask once for each fault, all at once, and require that the client is told not to ask again."""
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            for fault in faults:
                group.create_task(self._fail(session, fault))

    async def _fail(self, session: aiohttp.ClientSession, fault: Fault) -> None:
        text = f"given-up-{self._batch}-{next(self._numbers):06}"
        async with self._post(session, text, fault) as response:
            error = (await response.json())["error"]
            assert (response.status, error["code"]) == (502, "HordeUnreachable")
            assert response.headers["x-should-retry"] == "false"
        assert self._link.tries[text] == fault.times
        await asyncio.to_thread(self._require_ended_once, text)

    def _require_ended_once(self, text: str) -> None:
        """Require one request, which the front has cancelled or which a worker had begun, and one charge at most."""
        asking = Asking(self._horde, text)
        ended = [["cancelled"], ["done"]]
        wait_until(lambda: asking.request_states() in ended, 30, f"{text} is {asking.request_states()}")
        assert asking.charges() <= 1

    def require_one_each(self) -> None:
        """Require one request and one charge for everything that was answered."""
        wait_until(lambda: self._count("charges") >= len(self.asked), 60, "not everything is settled")
        assert self._count("requests") == len(self.asked)
        assert self._count("charges") == len(self.asked)
        assert self._count("answered") == len(self.asked)

    async def _ask_each(self, session: aiohttp.ClientSession, faults: Iterator[Fault]) -> None:
        for fault in faults:
            await self._ask(session, fault)

    async def _ask(self, session: aiohttp.ClientSession, fault: Fault | None) -> str:
        text = f"lost-{self._batch}-{next(self._numbers):06}"
        self.asked.append(text)
        async with self._post(session, text, fault) as response:
            answer = await response.json()
            assert response.status == 200, (fault, answer)
        assert answer["choices"][0]["message"]["content"] == text, fault
        assert fault is None or text not in self._link.faults, "the fault was never met"
        return text

    @asynccontextmanager
    async def _post(
        self, session: aiohttp.ClientSession, text: str, fault: Fault | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if fault is not None:
            self._link.faults[text] = fault
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": 32}
        headers = {"X-Request-Id": text, "Authorization": f"Bearer {KEYS.demo}"}
        async with session.post(f"{self._front}/v1/chat/completions", json=body, headers=headers) as response:
            yield response

    def _count(self, what: str) -> int:
        found = {
            "requests": "SELECT count(*) FROM request_bodies b WHERE strpos(b.prompt, :batch) > 0",
            "answered": "SELECT count(*) FROM horde_requests r JOIN request_bodies b ON b.request_id = r.id"
            " WHERE r.state = 'done' AND strpos(b.prompt, :batch) > 0",
            "charges": "SELECT count(*) FROM ledger_entries e JOIN generations g ON e.business_key"
            " = 'generation:' || g.id JOIN request_bodies b ON b.request_id = g.request_id"
            " WHERE e.kind = 'charge' AND strpos(b.prompt, :batch) > 0",
        }[what]
        return int(str(self._horde.query(found, batch=f"lost-{self._batch}-")[0][0]))


@pytest.fixture
async def client(horde: HordeProcesses, tmp_path: Path) -> AsyncIterator[Client]:
    async with faulty_link(horde.ports.native) as link:
        settings = {"SERVICE_PASSKEY": KEYS.service_passkey}
        with running_front(tmp_path, link.urls, horde.services.redis_url, **settings) as front:
            client = Client(horde, link, front.url)
            yield client
            await asyncio.to_thread(client.require_one_each)


def cuts(size: int, where: Place, *, reset: bool, step: int = 1) -> list[Fault]:
    """A cut before each byte of a message, and one after its last."""
    points = sorted({*range(0, size + 1, step), size})
    return [Fault(where, point, reset) for point in points]


@pytest.mark.parametrize("where", ["request", "response"])
async def test_a_submit_cut_at_a_byte_here_and_there_is_made_once(client: Client, where: Place) -> None:
    size = (await client.sizes())[where == "response"]
    step = -(-size // SAMPLE)
    await client.ask_all(cuts(size, where, reset=True, step=step) + cuts(size, where, reset=False, step=step))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", ["request", "response"])
async def test_a_submit_cut_at_any_byte_is_made_once(client: Client, where: Place) -> None:
    size = (await client.sizes())[where == "response"]
    await client.ask_all([Fault(where, at, reset=at % 2 == 0) for at in range(size + 1)])


async def test_a_submit_that_something_else_answers_is_made_once(client: Client) -> None:
    faults = [
        Fault("instead", instead=said, reaches=reaches, reset=False) for said in INSTEAD for reaches in (True, False)
    ]
    await client.ask_all(faults)


@pytest.mark.slow
async def test_a_submit_whose_answer_does_not_come_in_time_is_made_once(client: Client) -> None:
    await client.ask_all([Fault("response", at=2**20, hold=6.0, reset=False)] * 3)


async def test_a_submit_whose_every_answer_is_lost_is_given_up_and_made_at_most_once(client: Client) -> None:
    await client.fail_all([Fault("response", at=at, times=3) for at in (0, 1, 20, 200, 400)])
