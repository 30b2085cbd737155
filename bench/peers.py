"""What the whole horde adds to a chat beside what a bare LLM proxy adds, LiteLLM's, in the same run.

    python -m bench.peers [--litellm PROGRAM] [--seconds 10] [--clients 1 16 64] [--streams 12]

Without the proxy's program (`--litellm`, the environment variable BENCH_LITELLM, or `litellm` on
the PATH) it says how to install it and measures nothing. Else the same closed-loop clients load,
one after the other and each alone on this machine: the scripted backend bare; LiteLLM's proxy
before it, one worker, no database, no logs; the whole horde before it, as `bench.roundtrip` has
it. Added is a p50 less the backend's own with as many clients, in milliseconds.

Then streams of 50 pieces, 20 ms apart, with 1 and 16 clients: the time from the call to the first
text. A proxy passes each piece on. The horde's worker posts the first piece at once and from then on
once a second; its front spreads a post evenly over the second until the next one (STREAM_PACING), but
for the first letter of a stream, which goes out at once. "Pacing off" is the same horde with that
setting off. The worker has a thread for each of the 16 streams, since those beyond its threads would
wait for a whole stream to end.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.databases import create_database
from bench.litellm_proxy import HOW_TO_INSTALL, NAME, NoSuchProgramError, find, running_proxy, version_of
from bench.load import Figures, closed_loop, counted_loop
from bench.report import Figure, tell
from bench.roundtrip import AS_SHIPPED, DURABLE, complete
from tests.support.horde import KEYS, MODEL, START_SECONDS, HordeProcesses, answers
from tests.support.services import LocalServices, wait_until

STREAMING_CLIENTS = (1, 16)
TEXT = "word " * 30
"""Fifty pieces of the scripted backend, three letters each."""

STREAM = {
    "model": MODEL,
    "messages": [{"role": "user", "content": f"[[pace=0.02]]{TEXT}"}],
    "max_tokens": 128,
    "stream": True,
}
OWN = {
    "worker": {"WORKER_THREADS": str(max(STREAMING_CLIENTS))},
    # Every client comes from one address, and its default is as many as there are clients.
    "front": {"FRONT_SOURCE_LIMIT": "1000"},
}


@dataclass(frozen=True, slots=True)
class Target:
    """Something that takes chats at `root`, with a key."""

    root: str
    key: str

    async def complete(self, session: aiohttp.ClientSession) -> None:
        """Ask for one completion and check that it is one."""
        await complete(self.root, session, self.key)

    async def stream(self, session: aiohttp.ClientSession) -> float:
        """Read one stream to its end and check its text; milliseconds from the call to the first text."""
        began, first, text = time.perf_counter(), None, ""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with session.post(f"{self.root}/v1/chat/completions", json=STREAM, headers=headers) as response:
            async for line in response.content:
                text += text_in(line)
                if text and first is None:
                    first = time.perf_counter()
        if text != TEXT or first is None:
            raise RuntimeError(f"{response.status}: a stream of {text!r}")
        return 1000 * (first - began)


def text_in(line: bytes) -> str:
    """The text that a line of an event stream brings; none for anything but a chunk with content."""
    if not line.startswith(b"data: {"):
        return ""
    choices = json.loads(line.removeprefix(b"data: ")).get("choices") or []
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: what so many clients saw at the bare backend, through the proxy, and through the horde.

    `p50` in milliseconds; `rate` in completions a second, None where only the first text was measured.
    """

    label: str
    bare: float
    proxy: float
    horde: float
    rates: tuple[float, float, float] | None = None

    @property
    def added_ratio(self) -> float:
        """What the horde adds to the p50 ÷ what the proxy adds."""
        return (self.horde - self.bare) / (self.proxy - self.bare)

    def cells(self) -> tuple[str, ...]:
        """The columns for people."""
        added = (f"{self.proxy - self.bare:.1f}", f"{self.horde - self.bare:.1f}", f"{self.added_ratio:.2f}")
        if self.rates is None:
            return self.label, f"{self.bare:.1f}", *added, "–", "–", "–", "–"
        bare, proxy, horde = self.rates
        return (
            self.label,
            f"{self.bare:.1f}",
            *added,
            f"{bare:.0f}",
            f"{proxy:.1f}",
            f"{horde:.1f}",
            f"{horde / proxy:.2f}",
        )


HEAD = (
    "ms, and a second",
    "backend p50",
    f"{NAME} adds",
    "horde adds",
    f"horde ÷ {NAME}",
    "backend, a second",
    NAME,
    "horde",
    f"horde ÷ {NAME}",
)


def chats(target: Target, clients: Sequence[int], seconds: float) -> dict[int, Figures]:
    """Figures of plain chats, by the number of clients."""
    return {count: asyncio.run(closed_loop(target.complete, clients=count, seconds=seconds)) for count in clients}


def first_texts(target: Target, streams: int) -> dict[int, float]:
    """Median milliseconds to the first text, by the number of clients; each reads so many streams."""
    return {clients: asyncio.run(_first_text(target, clients, streams)) for clients in STREAMING_CLIENTS}


async def _first_text(target: Target, clients: int, streams: int) -> float:
    took: list[float] = []

    async def one(session: aiohttp.ClientSession) -> None:
        took.append(await target.stream(session))

    await counted_loop(one, clients=clients, calls=clients)
    took.clear()
    await counted_loop(one, clients=clients, calls=clients * streams)
    return statistics.median(took)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one target came to, by the number of clients."""

    chats: dict[int, Figures]
    firsts: dict[int, float]

    @classmethod
    def of(cls, name: str, target: Target, options: argparse.Namespace) -> "Measured":
        """Load a target, and say how busy the machine is meanwhile."""
        measured = cls(chats(target, options.clients, options.seconds), first_texts(target, options.streams))
        say_load(name)
        return measured


def say_load(name: str) -> None:
    """Print the load average of the last minute, which others on the machine may have made."""
    print(f"{name}: load average {os.getloadavg()[0]:.1f}")


def rows(bare: Measured, proxy: Measured, horde: Measured, unpaced: Mapping[int, float]) -> list[Row]:
    """The table's lines."""
    found = []
    for clients, own in bare.chats.items():
        through, whole = proxy.chats[clients], horde.chats[clients]
        rates = (own.per_second, through.per_second, whole.per_second)
        found.append(Row(f"chat, {clients} at once", own.p50_ms, through.p50_ms, whole.p50_ms, rates))
    for label, firsts in (("first text", horde.firsts), ("first text, pacing off", unpaced)):
        found += [
            Row(f"{label}, {clients} at once", own, proxy.firsts[clients], firsts[clients])
            for clients, own in bare.firsts.items()
        ]
    return found


def run(program: Path, options: argparse.Namespace, services: LocalServices) -> list[Row]:
    """Measure all three, each alone."""
    folder = Path(tempfile.mkdtemp(prefix="horde-bench-"))
    horde = HordeProcesses(services, create_database(services), folder, AS_SHIPPED, OWN)
    try:
        horde.start("backend")
        wait_until(lambda: answers(f"{horde.backend}/health"), START_SECONDS, f"no backend, see {folder}")
        bare = Measured.of("backend", Target(horde.backend, "none"), options)
        with running_proxy(program, folder, horde.backend) as peer:
            proxy = Measured.of(NAME, Target(peer.root, peer.key), options)
        horde.stop("backend")
        horde.start_all()
        whole = Target(horde.front, KEYS.demo)
        measured = Measured.of("horde", whole, options)
        horde.stop("front")
        horde.start("front", STREAM_PACING="false")
        horde.wait_ready()
        unpaced = first_texts(whole, options.streams)
        say_load("horde, pacing off")
        horde.require_sound(60)
    finally:
        horde.close()
    return rows(bare, proxy, measured, unpaced)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--litellm", metavar="PROGRAM", help="LiteLLM's program, in its virtual environment")
    parser.add_argument("--seconds", type=float, default=10, help="of each load of plain chats")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--streams", type=int, default=12, help="that each streaming client reads")
    options = parser.parse_args()
    try:
        program = find(options.litellm)
    except NoSuchProgramError as error:
        parser.error(str(error))
    if program is None:
        print(HOW_TO_INSTALL)
        sys.exit()
    print(f"{NAME} {version_of(program)}; load average {os.getloadavg()[0]:.1f} before")
    with LocalServices(DURABLE) as services:
        found = run(program, options, services)
    for cells in (HEAD, ["---"] * len(HEAD), *(row.cells() for row in found)):
        print(f"| {' | '.join(cells)} |")
    for clients, row in zip(options.clients, found, strict=False):
        if clients == 1:
            tell(Figure("peer_added", row.added_ratio))


if __name__ == "__main__":
    main()
