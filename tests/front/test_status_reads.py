"""Reads of statuses, alone and in bursts."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import orjson
import pytest
from aiohttp import web

from front.background import Background
from front.native import Caller, NativeApi, Unreachable
from front.status_reads import READS_AT_ONCE, StatusReads
from tests.support.services import free_port

CALLER = Caller(api_key="key", address="127.0.0.1", request_id="call")


class Native:
    """A native API that holds single reads until it is told to go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.all_came = asyncio.Event()
        self.single = 0
        self.batches: list[dict[str, str | None]] = []
        self.batch_status = 200
        self.held: list[asyncio.Task[object]] = []

    async def one(self, request: web.Request) -> web.Response:
        self.single += 1
        if self.single == READS_AT_ONCE:
            self.all_came.set()
        await self.go_on.wait()
        return web.json_response({"id": request.match_info["id"]})

    async def many(self, request: web.Request) -> web.Response:
        seen = orjson.loads(await request.read())["seen"]
        self.batches.append(seen)
        changed = {key: {"id": key, "version": "2"} for key, version in seen.items() if version is None}
        gone = {key: None for key, version in seen.items() if version == "gone"}
        return web.json_response({"statuses": changed | gone}, status=self.batch_status)


@pytest.fixture
async def native() -> Native:
    return Native()


@pytest.fixture
async def reads(native: Native) -> AsyncIterator[StatusReads]:
    app, port = web.Application(), free_port()
    app.router.add_get("/api/v2/generate/chat/status/{id}", native.one)
    app.router.add_post("/internal/statuses", native.many)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    api = NativeApi((f"http://127.0.0.1:{port}",), "a-passkey-of-some-length")
    api.open()
    yield StatusReads(api, Background())
    native.go_on.set()
    await asyncio.gather(*native.held)
    await api.close()
    await runner.cleanup()


async def busy(native: Native, reads: StatusReads) -> None:
    """Let as many reads as go out by themselves be under way until the test ends."""
    native.held += [asyncio.create_task(reads.read(str(uuid4()), CALLER, None)) for _ in range(READS_AT_ONCE)]
    async with asyncio.timeout(5):
        await native.all_came.wait()


async def test_a_single_read_goes_out_by_itself(native: Native, reads: StatusReads) -> None:
    native.go_on.set()
    look = await reads.read("a", CALLER, None)
    assert (look.status, native.batches) == ({"id": "a"}, [])


async def test_a_burst_is_read_in_few_calls(native: Native, reads: StatusReads) -> None:
    await busy(native, reads)
    ids = [str(uuid4()) for _ in range(450)]
    looks = await asyncio.gather(*(reads.read(each, CALLER, None) for each in ids))
    assert [look.status and look.status["id"] for look in looks] == ids
    assert sum(map(len, native.batches)) == 450
    assert len(native.batches) <= 4


async def test_a_batch_tells_unchanged_from_unknown(native: Native, reads: StatusReads) -> None:
    await busy(native, reads)
    same, gone = await asyncio.gather(reads.read("same", CALLER, "2"), reads.read("gone", CALLER, "gone"))
    assert (same.unchanged, gone.unchanged, gone.unknown) == (True, False, True)


async def test_a_batch_that_fails_is_a_read_without_an_answer_for_each(native: Native, reads: StatusReads) -> None:
    await busy(native, reads)
    native.batch_status = 503
    found = await asyncio.gather(*(reads.read(each, CALLER, None) for each in "ab"), return_exceptions=True)
    assert [type(each) for each in found] == [Unreachable, Unreachable]
