"""How fast, how smooth and how heavy live streams are on one front process.

    python -m bench.streams [--posts 300] [--streams 2000] [--seconds 20] [--plot docs/reference/pacing.svg]

Starts a Valkey, a front and a small native API, and writes a worker's posts straight into
Redis. Prints the time from a post to the client beside a bare XADD and blocking XREAD on
the same Redis; memory, CPU and errors of many open streams at one post a second each; and
the gaps between the chunks of one paced stream. `--plot` draws that stream.
"""

import argparse
import asyncio
import itertools
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import psutil
import redis.asyncio as redis

from app.domain.progress_entries import ProgressEntry
from app.domain.redis_keys import ChatEvent, chat_channel, chat_event, progress_key
from bench.plot import Line, plot
from bench.report import Figure, tell
from launcher.services.valkey import Valkey
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import ScriptedNative, generation_of
from tests.support.services import RunningService, free_port

SETTINGS = {"FRONT_SOURCE_LIMIT": "9000", "AVAILABILITY_GRACE_SECONDS": "600"}
ASKING = {"model": "demo-8b", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
PROGRESS = chat_event(ChatEvent.PROGRESS)
POST = "about as much text as a worker writes in a second, some twenty tokens or so. "
OPENING_AT_ONCE = 50
SETTLING_SECONDS = 3.0
FEEDS_A_SECOND = 50
PACED_POSTS = 12


@dataclass
class Client:
    """One open stream and what came over it."""

    request_id: str
    response: aiohttp.ClientResponse
    text: list[str] = field(default_factory=list)
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    errors: int = 0
    is_done: bool = False

    async def event(self) -> str | None:
        """The content of the next event; None at the end."""
        raw = await self.response.content.readuntil(b"\n\n")
        if raw.startswith(b":"):
            return ""
        if raw == b"data: [DONE]\n\n":
            self.is_done = True
            return None
        chunk = orjson.loads(raw.removeprefix(b"data: "))
        self.errors += "error" in chunk
        text = "".join(choice["delta"].get("content") or "" for choice in chunk.get("choices", ()))
        if text:
            self.text.append(text)
            self.arrivals.append((time.perf_counter(), len(text)))
        return text

    async def read(self) -> None:
        """Read to the end."""
        while await self.event() is not None:
            pass


class Bench:
    """The parts of one run."""

    def __init__(self, native: ScriptedNative, url: str, session: aiohttp.ClientSession) -> None:
        self.native = native
        self.redis = redis.Redis.from_url(url)
        self.session = session

    async def open(self, front: FrontProcess) -> Client:
        """Ask for a stream, and read its opening."""
        response = await self.session.post(f"{front.url}/v1/chat/completions", json=ASKING)
        opening = orjson.loads((await response.content.readuntil(b"\n\n")).removeprefix(b"data: "))
        return Client(opening["id"].removeprefix("chatcmpl-"), response)

    def write(self, pipe: Any, request_id: str, seq: int, delta: str) -> None:
        """Post as a worker does."""
        entry: dict[Any, Any] = dict(ProgressEntry(generation_id="g", seq=seq, delta=delta).encode())
        pipe.xadd(progress_key(request_id), entry)
        pipe.publish(chat_channel(request_id), PROGRESS)

    async def post(self, request_id: str, seq: int, delta: str) -> None:
        """Post by itself."""
        async with self.redis.pipeline(transaction=False) as pipe:
            self.write(pipe, request_id, seq, delta)
            await pipe.execute()

    async def finish(self, client: Client, text: str) -> None:
        """Deliver the reply."""
        message = {**generation_of()["message"], "content": text}
        self.native.finish(client.request_id, message=message)
        await self.redis.publish(chat_channel(client.request_id), chat_event(ChatEvent.DONE))

    async def latencies(self, front: FrontProcess, posts: int) -> list[float]:
        """Milliseconds from before each post to its arrival."""
        client, took = await self.open(front), []
        for seq in range(posts):
            started = time.perf_counter()
            await self.post(client.request_id, seq, POST)
            while await client.event() == "":
                pass
            took.append(1000 * (client.arrivals[-1][0] - started))
        await self.finish(client, POST * posts)
        await client.read()
        assert "".join(client.text) == POST * posts
        return sorted(took[posts // 10 :])

    async def bare(self, posts: int) -> list[float]:
        """The same between two connections to Redis, one of which blocks."""
        reader, took, place = self.redis.client(), [], b"0-0"
        entry: dict[Any, Any] = dict(ProgressEntry(generation_id="g", seq=0, delta=POST).encode())
        for _ in range(posts):
            blocking: Any = reader.xread({"bench": place}, block=1000)
            reading: asyncio.Task[Any] = asyncio.create_task(blocking)
            await asyncio.sleep(0.002)
            started = time.perf_counter()
            await self.redis.xadd("bench", entry)
            found = await reading
            took.append(1000 * (time.perf_counter() - started))
            place = found[0][1][-1][0]
        await reader.aclose()
        return sorted(took[posts // 10 :])

    async def crowd(self, front: FrontProcess, streams: int, seconds: int) -> None:
        """Hold many streams at one post a second each, and print what they cost."""
        process = psutil.Process(front.process.pid)
        before = process.memory_info().rss
        clients: list[Client] = []
        for _ in range(-(-streams // OPENING_AT_ONCE)):
            clients += await asyncio.gather(*(self.open(front) for _ in range(OPENING_AT_ONCE)))
        reading = [asyncio.create_task(client.read()) for client in clients]
        await asyncio.sleep(SETTLING_SECONDS)
        idle, started, used = process.memory_info().rss, time.perf_counter(), processor_seconds(process)
        await self._feed(clients, seconds)
        elapsed, spent = time.perf_counter() - started, processor_seconds(process) - used
        busy = process.memory_info().rss
        for client in clients:
            await self.finish(client, POST * seconds)
        await asyncio.wait(reading, timeout=120)
        bad = sum(client.errors or not client.is_done or "".join(client.text) != POST * seconds for client in clients)
        posts = len(clients) * seconds
        tell(Figure("stream_kilobytes", (busy - before) / 1024 / len(clients)))
        print(
            f"{len(clients)} streams     {(idle - before) / 1024 / len(clients):.1f} kB each idle,"
            f" {(busy - before) / 1024 / len(clients):.1f} kB each busy   {posts / elapsed:.0f} posts/s"
            f"   {100 * spent / elapsed:.0f} % of a core   {sum(map(len, (each.arrivals for each in clients)))} chunks"
            f"   {bad} bad"
        )

    async def _feed(self, clients: list[Client], seconds: int) -> None:
        """One post a second for each, spread over the second."""
        share = -(-len(clients) // FEEDS_A_SECOND)
        started = time.perf_counter()
        for step in range(seconds * FEEDS_A_SECOND):
            seq, part = divmod(step, FEEDS_A_SECOND)
            async with self.redis.pipeline(transaction=False) as pipe:
                for client in clients[part * share : (part + 1) * share]:
                    self.write(pipe, client.request_id, seq, POST)
                await pipe.execute()
            await asyncio.sleep(max(0.0, started + (step + 1) / FEEDS_A_SECOND - time.perf_counter()))

    async def flow(self, front: FrontProcess) -> Client:
        """One stream of a worker whose posts come about once a second; times count from its first post."""
        chance, client = random.Random(62), await self.open(front)  # noqa: S311 - the same jitter in every run
        reading = asyncio.create_task(client.read())
        started, text = time.perf_counter(), ""
        for seq in range(PACED_POSTS):
            delta = POST[: chance.randint(40, len(POST))]
            text += delta
            await self.post(client.request_id, seq, delta)
            await asyncio.sleep(chance.uniform(0.8, 1.2))
        await self.finish(client, text)
        await reading
        client.arrivals = [(moment - started, length) for moment, length in client.arrivals]
        return client


def processor_seconds(process: psutil.Process) -> float:
    """Processor time so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def percentiles(took: list[float]) -> str:
    """What is read of sorted figures."""
    return f"p50 {statistics.median(took):6.2f}  p95 {took[int(0.95 * len(took))]:6.2f}  max {took[-1]:6.2f}"


def gaps(client: Client) -> list[float]:
    """Milliseconds between a stream's chunks, sorted."""
    return sorted(1000 * (later - earlier) for (earlier, _), (later, _) in itertools.pairwise(client.arrivals))


def line(name: str, client: Client) -> Line:
    """Characters at the client over time."""
    moments = [moment for moment, _ in client.arrivals]
    return Line(name, list(zip(moments, itertools.accumulate(size for _, size in client.arrivals), strict=True)))


async def measure(native: ScriptedNative, url: str, folder: Path, options: argparse.Namespace) -> None:
    """Run everything and print it."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        bench = Bench(native, url, session)
        with running_front(folder, native.url, url, STREAM_PACING="false", **SETTINGS) as front:
            wait_for_redis(front)
            await bench.latencies(front, 50)
            took, bare = await bench.latencies(front, options.posts), await bench.bare(options.posts)
            print(f"post to client   {percentiles(took)} ms")
            ratio = statistics.median(took) / statistics.median(bare)
            p95 = took[int(0.95 * len(took))]
            tell(Figure("post_p50", statistics.median(took), ratio), Figure("post_p95", p95))
            print(f"bare XADD, XREAD {percentiles(bare)} ms   ratio {ratio:.1f}")
            lumps = await bench.flow(front)
        with running_front(folder, native.url, url, **SETTINGS) as front:
            wait_for_redis(front)
            paced = await bench.flow(front)
            print(f"gaps unpaced     {percentiles(gaps(lumps))} ms   {len(lumps.arrivals)} chunks")
            print(f"gaps paced       {percentiles(gaps(paced))} ms   {len(paced.arrivals)} chunks")
            if options.plot is not None:
                options.plot.write_text(
                    plot([line("as posted", lumps), line("paced", paced)], "seconds", "characters at the client")
                )
            if options.streams:
                await bench.crowd(front, options.streams, options.seconds)
        await bench.redis.aclose()


@contextmanager
def running_valkey(folder: Path) -> Iterator[str]:
    """A Valkey; its URL."""
    folder.chmod(0o711)
    service = RunningService(Valkey(folder / "redis", free_port(), "throw-away"), folder)
    service.start()
    try:
        yield service.service.url
    finally:
        service.stop()


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=300)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = Path(tempfile.mkdtemp(prefix="horde-bench-"))
    with running_valkey(folder) as url, ScriptedNative() as native:
        native.reset()
        asyncio.run(measure(native, url, folder, options))


if __name__ == "__main__":
    main()
