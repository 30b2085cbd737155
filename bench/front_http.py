"""What a call to the native API costs in the front's HTTP client, and what a burst of new clients meets at its server.

    python -m bench.front_http [--calls 3000] [--burst 2000]

Prints processor time and median latency of a submit of four kilobytes with aiohttp as the
front sets it up, with aiohttp as it comes, and with blocking calls in threads, beside the same
bytes over a bare socket; and how many clients of a burst are connected within a second, by the length of the
listener's backlog.
"""

import argparse
import asyncio
import http.client
import resource
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import aiohttp

from bench.waits import a_request
from front.native import NativeApi
from front.server import BACKLOG

ANSWER = b"HTTP/1.1 202 ACCEPTED\r\nContent-Type: application/json\r\nContent-Length: 600\r\n\r\n" + b"x" * 600
HEADERS = {"apikey": "a-key", "Content-Type": "application/json", "X-Request-Id": "req_0123456789"}
AT_ONCE = 32
BACKLOGS = (100, BACKLOG)

Call = Callable[[], Awaitable[object]]


class Root(threading.Thread):
    """A server that reads a request and answers, in a thread of its own, and does little else."""

    def __init__(self, backlog: int = 2048) -> None:
        super().__init__(daemon=True)
        self._backlog = backlog
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self.port = 0

    def __enter__(self) -> "Root":
        self.start()
        self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(10)

    def run(self) -> None:
        """Serve until the loop is stopped."""
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=self._backlog))
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                await reader.readexactly(next(int(line[15:]) for line in lines if line.startswith(b"content-length:")))
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def measured(name: str, call: Call, calls: int, bare: float | None) -> float:
    """Print what `calls` calls cost, `AT_ONCE` at a time, the root's part included; returns the cost of one."""
    took: list[float] = []

    async def some() -> None:
        for _ in range(calls // AT_ONCE):
            started = time.perf_counter()
            await call()
            took.append(1000 * (time.perf_counter() - started))

    await call()
    before = time.process_time()
    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    cost = 1000 * (time.process_time() - before) / len(took)
    ratio = "" if bare is None else f"   ratio {cost / bare:.1f}"
    print(f"{name:24} {cost:.3f} ms of processor time a call   p50 {statistics.median(took):.2f} ms{ratio}")
    return cost


async def clients(port: int, calls: int) -> None:
    """Every client against one root."""
    request = a_request()
    body = request.partition(b"\r\n\r\n")[2]
    url = f"http://127.0.0.1:{port}/api/v2/generate/chat/async"
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(AT_ONCE)]

    async def bare() -> None:
        reader, writer = idle.pop()
        writer.write(request)
        await reader.readexactly(len(ANSWER))
        idle.append((reader, writer))

    cost = await measured("bare socket", bare, calls, None)
    for _, writer in idle:
        writer.close()

    native = NativeApi((f"http://127.0.0.1:{port}",), "a-passkey")
    native.open()
    root = native.roots.in_turn()[0]
    await measured("aiohttp, as the front", lambda: native.submit(root, body, HEADERS, 5), calls, cost)
    await native.close()

    async with aiohttp.ClientSession() as session:

        async def plain() -> None:
            async with session.post(url, data=body, headers=HEADERS) as response:
                await response.read()

        await measured("aiohttp, as it comes", plain, calls, cost)
    pool, local = ThreadPoolExecutor(AT_ONCE), threading.local()

    def blocking() -> None:
        connection = getattr(local, "connection", None)
        if connection is None:
            connection = local.connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/api/v2/generate/chat/async", body, HEADERS)
        connection.getresponse().read()

    loop = asyncio.get_running_loop()
    await measured("http.client in threads", lambda: loop.run_in_executor(pool, blocking), calls, cost)
    pool.shutdown()


async def burst(port: int, number: int) -> int:
    """How many of a burst of new connections are made within a second."""

    async def connect() -> asyncio.StreamWriter:
        return (await asyncio.open_connection("127.0.0.1", port))[1]

    connecting = [asyncio.create_task(connect()) for _ in range(number)]
    done, late = await asyncio.wait(connecting, timeout=1.0)
    for task in late:
        task.cancel()
    await asyncio.gather(*connecting, return_exceptions=True)
    made = [task for task in done if task.exception() is None]
    for task in made:
        task.result().close()
    return len(made)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--burst", type=int, default=2000)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Root() as root:
        asyncio.run(clients(root.port, options.calls))
    for backlog in BACKLOGS:
        with Root(backlog) as root:
            made = asyncio.run(burst(root.port, options.burst))
        print(f"backlog {backlog:5}   {made} of {options.burst} connected within a second")


if __name__ == "__main__":
    main()
