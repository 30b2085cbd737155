"""A closed loop of keep-alive clients, and the figures of what they saw."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp

Call = Callable[[aiohttp.ClientSession], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Figures:
    """What one load measured."""

    clients: int
    calls: int
    seconds: float
    p50_ms: float
    p95_ms: float

    @property
    def per_second(self) -> float:
        """Calls answered a second."""
        return self.calls / self.seconds

    def __str__(self) -> str:
        return (
            f"{self.clients:>3} clients  {self.per_second:7.1f}/s  p50 {self.p50_ms:7.1f} ms  p95 {self.p95_ms:7.1f} ms"
            f"  ({self.calls} calls)"
        )


async def closed_loop(call: Call, *, clients: int, seconds: float) -> Figures:
    """Let each client call again as soon as it is answered, for `seconds`, after a short warm-up."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(call(session) for _ in range(clients)))
        latencies: list[float] = []
        started = time.perf_counter()
        until = started + seconds

        async def one_client() -> None:
            while time.perf_counter() < until:
                begun = time.perf_counter()
                await call(session)
                latencies.append(time.perf_counter() - begun)

        await asyncio.gather(*(one_client() for _ in range(clients)))
        elapsed = time.perf_counter() - started
    return figures_of(latencies, clients=clients, seconds=elapsed)


async def counted_loop(call: Call, *, clients: int, calls: int) -> Figures:
    """Let the clients make so many calls between them, each again as soon as it is answered."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        latencies: list[float] = []
        left = iter(range(calls))

        async def one_client() -> None:
            for _ in left:
                begun = time.perf_counter()
                await call(session)
                latencies.append(time.perf_counter() - begun)

        started = time.perf_counter()
        await asyncio.gather(*(one_client() for _ in range(clients)))
        return figures_of(latencies, clients=clients, seconds=time.perf_counter() - started)


def figures_of(latencies: list[float], *, clients: int, seconds: float) -> Figures:
    """Work out the figures of these latencies, in seconds."""
    ordered = sorted(latencies)
    return Figures(
        clients=clients,
        calls=len(ordered),
        seconds=seconds,
        p50_ms=1000 * ordered[len(ordered) // 2],
        p95_ms=1000 * ordered[int(len(ordered) * 0.95)],
    )
