"""What many open waits cost one front process, and whether all of them are answered, and let go when they vanish.

    python -m bench.waits [--waits 10000] [--vanish 1000] [--idle 30] [--bare 2000]

Starts a throw-away horde without a worker process: the native API, the front, PostgreSQL and
Valkey are real, the clients are sockets of this process. Prints the front's memory for each
wait beside that of a bare Hypercorn stream, its connections to Redis, its processor time while
nothing happens but the fallback poll, how long it takes until the requests of clients that
vanish are cancelled, and until everybody else is answered.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psutil
import redis
from sqlalchemy import Engine, create_engine, text

from app.domain.redis_keys import ChatEvent, chat_channel, chat_event
from app.services.local_accounts import ensure_local_accounts
from bench.databases import create_database
from bench.held_pop import ready
from bench.report import Figure, tell
from bench.roundtrip import AS_SHIPPED, DURABLE
from tests.support.hand_worker import HandWorker
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import LocalServices, free_port, wait_until

MODEL = "bench-waits"
BODY_BYTES = 4096
SUBMITS_AT_ONCE = 100
SETTLING_SECONDS = 15.0
"""Longer than the first poll of each wait, which learns the version of its status."""
PATIENCE_SECONDS = 120.0
SETTINGS = AS_SHIPPED | {
    "AVAILABILITY_GRACE_SECONDS": "3600",
    "DEFAULT_DEADLINE_SECONDS": "1200",
    "FRONT_SOURCE_LIMIT": "20000",
    "RATE_LIMITS": "false",
}
BARE = """
import asyncio, sys
from hypercorn.asyncio import serve
from hypercorn.config import Config

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x", "more_body": True})
    await asyncio.Event().wait()

config = Config()
config.bind = [f"127.0.0.1:{sys.argv[1]}"]
config.backlog = 2048
asyncio.run(serve(app, config, shutdown_trigger=asyncio.Event().wait))
"""

FINISH = text(
    """
    WITH ended AS (
        UPDATE horde_requests SET state = 'done', ended_at = now(), waiting = 0, finished = 1
        WHERE state = 'queued' RETURNING id
    ), dequeued AS (
        DELETE FROM queue_entries USING ended WHERE request_id = ended.id
    ), made AS (
        INSERT INTO generations (id, request_id, worker_id, state, model, deadline_at, ended_at, charge, reward)
        SELECT gen_random_uuid(), ended.id, w.id, 'settled', :model, now(), now(), 1000, 0
        FROM ended, (SELECT id FROM workers LIMIT 1) w RETURNING id, request_id
    ), replied AS (
        INSERT INTO replies (generation_id, body)
        SELECT id, '{"content": "Hello!", "finish_reason": "stop"}' FROM made
    )
    SELECT request_id FROM made
    """
)


class Client(asyncio.Protocol):
    """One client: a socket that sent a request, and what came back."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._head = b""
        self.answered = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """The answer has begun: its status is what counts."""
        self._head += data
        if b"\r\n" in self._head and not self.answered.done():
            self.answered.set_result(int(self._head.split(b" ", 2)[1]))

    def connection_lost(self, exc: Exception | None) -> None:
        """The front hung up, or the bench did."""
        if not self.answered.done():
            self.answered.set_result(0)


class Bench:
    """One horde and the clients that wait at it."""

    def __init__(self, horde: HordeProcesses, engine: Engine) -> None:
        self.horde = horde
        self.front = psutil.Process(horde.running["front"].pid)
        self.clients: list[Client] = []
        self._engine = engine

    def count(self, states: str) -> int:
        """Requests in these states."""
        with self._engine.connect() as connection:
            found = connection.execute(
                text("SELECT count(*) FROM horde_requests WHERE state = ANY(string_to_array(:states, ','))"),
                {"states": states},
            )
            return int(found.scalar_one())

    async def open(self, waits: int) -> float:
        """Open so many waits, and return the seconds that took."""
        port, request = self.horde.ports.front, a_request()
        loop, started = asyncio.get_running_loop(), time.perf_counter()
        for number in range(waits):
            if number % SUBMITS_AT_ONCE == 0:
                await self.until(lambda number=number: self.count("queued") >= number - SUBMITS_AT_ONCE)  # type: ignore[misc]
            _, client = await loop.create_connection(lambda: Client(request), "127.0.0.1", port)
            self.clients.append(client)
        await self.until(lambda: self.count("queued") == waits)
        return time.perf_counter() - started

    async def until(self, condition: Callable[[], bool]) -> float:
        """Wait for a condition of the database, and return the seconds that took."""
        started = time.perf_counter()
        while not condition():
            if time.perf_counter() > started + PATIENCE_SECONDS:
                raise AssertionError(f"in vain; {sum(each.answered.done() for each in self.clients)} were answered")
            await asyncio.sleep(0.05)
        return time.perf_counter() - started

    def redis_connections(self) -> int:
        """The front's connections to Redis."""
        port = int(self.horde.services.redis_url.rsplit(":", 1)[1].split("/")[0])
        return sum(1 for each in self.front.net_connections("tcp") if each.raddr and each.raddr.port == port)

    async def vanish(self, number: int) -> float:
        """Let so many clients hang up, and return the seconds until all their requests are cancelled."""
        before = self.count("cancelled")
        gone, self.clients = self.clients[:number], self.clients[number:]
        for client in gone:
            assert client.transport is not None
            client.transport.abort()
        return await self.until(lambda: self.count("cancelled") == before + number)

    async def answer(self) -> tuple[float, float]:
        """Finish every request, and return the seconds until the first and until the last client has its answer."""
        with self._engine.begin() as connection:
            done = [str(row.request_id) for row in connection.execute(FINISH, {"model": MODEL})]
        started = time.perf_counter()
        with redis.Redis.from_url(self.horde.services.redis_url) as signals:
            for start in range(0, len(done), 500):
                with signals.pipeline(transaction=False) as pipe:
                    for request_id in done[start : start + 500]:
                        pipe.publish(chat_channel(request_id), chat_event(ChatEvent.DONE))
                    pipe.execute()
                await asyncio.sleep(0)
        waiting = [client.answered for client in self.clients]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_SECONDS)
        first = time.perf_counter() - started
        await asyncio.wait(waiting, timeout=PATIENCE_SECONDS)
        bad = sum(not each.done() or each.result() != 200 for each in waiting)
        assert not bad, f"{bad} of {len(waiting)} were not answered"
        return first, time.perf_counter() - started


def a_request() -> bytes:
    """A chat request of four kilobytes, as it goes over the wire."""
    asked = {"model": MODEL, "messages": [{"role": "user", "content": ""}], "max_tokens": 16}
    asked["messages"] = [{"role": "user", "content": "x" * (BODY_BYTES - len(json.dumps(asked)))}]
    body = json.dumps(asked).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: horde\r\nAuthorization: Bearer {KEYS.demo}\r\n"
        f"Content-Type: application/json\r\nUser-Agent: bench\r\nAccept: */*\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def bare_stream(streams: int) -> float:
    """Kilobytes of one open stream of Hypercorn with nothing behind it."""
    port = free_port()
    server = subprocess.Popen(  # noqa: ASYNC220 - a moment before anything is measured
        [
            sys.executable,
            "-c",
            BARE,
            str(port),
        ]
    )
    try:
        process, loop = psutil.Process(server.pid), asyncio.get_running_loop()
        clients: list[Client] = []

        async def open_one() -> None:
            request = b"GET / HTTP/1.1\r\nHost: horde\r\n\r\n"
            _, client = await loop.create_connection(lambda: Client(request), "127.0.0.1", port)
            clients.append(client)
            await client.answered

        while not clients:
            try:
                await open_one()
            except OSError:
                await asyncio.sleep(0.1)
        before = process.memory_info().rss
        for _ in range(streams // 50):
            await asyncio.gather(*(open_one() for _ in range(50)))
        used = (process.memory_info().rss - before) / 1024 / streams
        for client in clients:
            assert client.transport is not None
            client.transport.abort()
        return used
    finally:
        server.kill()
        server.wait(10)


def processor_seconds(process: psutil.Process) -> float:
    """Processor time so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


async def measure(horde: HordeProcesses, engine: Engine, options: argparse.Namespace) -> None:
    """Run everything and print it."""
    bare = await bare_stream(options.bare)
    bench = Bench(horde, engine)
    await bench.open(1)
    await bench.vanish(1)
    before = bench.front.memory_info().rss
    opening = await bench.open(options.waits)
    await asyncio.sleep(SETTLING_SECONDS)
    each = (bench.front.memory_info().rss - before) / 1024 / options.waits
    print(
        f"{options.waits} waits  {each:.1f} kB each   bare stream {bare:.1f} kB   ratio {each / bare:.2f}"
        f"   opened in {opening:.0f} s   {bench.redis_connections()} connections to Redis"
    )
    tell(Figure("wait_kilobytes", each, each / bare), Figure("wait_connections", bench.redis_connections()))
    web = psutil.Process(horde.running["web"].pid)
    natives = [web, *web.children(recursive=True)]
    spent, native = processor_seconds(bench.front), sum(map(processor_seconds, natives))
    await asyncio.sleep(options.idle)
    spent, native = processor_seconds(bench.front) - spent, sum(map(processor_seconds, natives)) - native
    tell(Figure("wait_idle", 100 * spent / options.idle))
    print(f"idle   front {100 * spent / options.idle:.1f} % of a core   native {100 * native / options.idle:.1f} %")
    if options.vanish:
        print(f"{options.vanish} clients vanish   cancelled within {await bench.vanish(options.vanish):.2f} s")
    first, last = await bench.answer()
    tell(Figure("wait_answered", last))
    print(f"{len(bench.clients)} answered   the first after {first:.2f} s, the last after {last:.2f} s")
    for client in bench.clients:
        assert client.transport is not None
        client.transport.close()


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waits", type=int, default=10_000)
    parser.add_argument("--vanish", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=30)
    parser.add_argument("--bare", type=int, default=2000)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = Path(tempfile.mkdtemp(prefix=f"horde-bench-{uuid4().hex[:8]}-"))
    with LocalServices(DURABLE) as services:
        horde = HordeProcesses(services, create_database(services), folder, SETTINGS)
        engine = create_engine(horde.settings.database_url)
        try:
            ensure_local_accounts(horde.settings, KEYS)
            for name in ("web", "front"):
                horde.start(name)
            for face in (horde.native, horde.front):
                wait_until(lambda face=face: ready(face), 60, f"{face} is not ready")  # type: ignore[misc]
            with engine.begin() as connection:
                connection.execute(text("UPDATE users SET concurrency = 1000000"))
            HandWorker(horde, MODEL).pop()
            asyncio.run(measure(horde, engine, options))
        finally:
            engine.dispose()
            horde.close()


if __name__ == "__main__":
    main()
