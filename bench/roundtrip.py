"""What the whole horde adds to a chat: client → front → native → worker → verification → client.

    python -m bench.roundtrip [--seconds 20] [--clients 1 8 32] [--flower]

Starts a throw-away horde (every Procfile process, an instant scripted backend, one
worker with 8 threads, all on this machine), loads it with closed-loop clients, each time
for a few seconds before anything is measured, while connections open and plans are made, and
prints latency, completions a second, and the same load on the front's bare health
route as the baseline of the run. SQL statements and Celery messages a completion
come from the horde's own metrics; CPU a completion, by process, from the system.
With `--flower` the Procfile's Flower watches, so that every task process sends events;
without it none does.
"""

import argparse
import asyncio
import base64
import json
import tempfile
import urllib.request
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

import aiohttp

from bench.cpu import spent_since, used_by
from bench.databases import create_database
from bench.load import Figures, closed_loop
from bench.report import Figure, tell
from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import LocalServices, free_port, wait_until

LOGIN = "bench:a-login-for-one-bench"
FLOWER_SECONDS = 60.0
WARM_UP_SECONDS = 3.0
WATCHED_CLIENTS = 32
AS_SHIPPED = {
    "SWEEP_SECONDS": "5",
    "RESCUE_AFTER_SECONDS": "5",
    "FALLBACK_POLL_SECONDS": "10",
    "QUEUE_REFRESH_SECONDS": "2",
    "USER_CONCURRENCY": "100000",
}
"""The periods as they come; one key asks for all clients, so its limit is out of the way."""
DURABLE: dict[str, str] = {}
"""PostgreSQL as it comes: every commit reaches the disk."""

BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Hello, horde. " * 20}], "max_tokens": 64}


def start(services: LocalServices, folder: Path, own: Mapping[str, Mapping[str, str]] | None = None) -> HordeProcesses:
    """Start a horde on a database of its own; `own` are settings of single processes."""
    horde = HordeProcesses(services, create_database(services), folder, AS_SHIPPED, own)
    horde.start_all()
    return horde


async def complete(root: str, session: aiohttp.ClientSession, key: str = KEYS.demo) -> None:
    """Ask what is at `root` for one completion and check that it is one."""
    headers = {"Authorization": f"Bearer {key}"}
    async with session.post(f"{root}/v1/chat/completions", json=BODY, headers=headers) as response:
        body = await response.json()
        if response.status != 200 or not body["choices"][0]["message"]["content"]:
            raise RuntimeError(f"{response.status}: {body}")


async def bare(horde: HordeProcesses, session: aiohttp.ClientSession) -> None:
    """Ask the same front server for an answer that needs nothing else."""
    async with session.get(f"{horde.front}/healthz") as response:
        await response.read()


def counted(horde: HordeProcesses) -> tuple[float, float]:
    """SQL statements and Celery messages that web and the task processes sent so far."""
    return horde.figure("horde_sql_statements_total"), horde.figure("horde_task_messages_sent_total")


def report(label: str, figures: Figures, baseline: Figures) -> None:
    """Print one load beside its baseline."""
    ratio = figures.per_second / baseline.per_second
    print(f"{label}  {figures}  bare {baseline.per_second:7.1f}/s  ratio {ratio:.3f}")


def tell_bars(figures: Figures, baseline: Figures, *, watched: bool) -> None:
    """Tell what the bars ask of so many clients."""
    if figures.clients == 1 and not watched:
        tell(Figure("added_p50", figures.p50_ms, figures.p50_ms / baseline.p50_ms))
        tell(Figure("added_p95", figures.p95_ms, figures.p95_ms / baseline.p95_ms))
    if figures.clients == WATCHED_CLIENTS:
        name = "completions_watched" if watched else "completions"
        tell(Figure(name, figures.per_second, figures.per_second / baseline.per_second))


def start_flower(horde: HordeProcesses) -> None:
    """Start Flower, and wait until it has turned the events of the task processes on."""
    port = free_port()
    horde.start("flower", FLOWER_PORT=str(port), FLOWER_ADDRESS="127.0.0.1", FLOWER_BASIC_AUTH=LOGIN)
    basic = base64.b64encode(LOGIN.encode()).decode()
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/api/tasks", headers={"Authorization": f"Basic {basic}"})
    wait_until(lambda: sees_tasks(asked), FLOWER_SECONDS, "Flower sees no task")


def sees_tasks(asked: urllib.request.Request) -> bool:
    """Whether Flower has heard of any task."""
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:  # noqa: S310 - a URL of ours
            return bool(json.load(answer))
    except OSError:
        return False


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--flower", action="store_true", help="let Flower watch")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=f"horde-bench-{uuid4().hex[:8]}-"))
    with LocalServices(DURABLE) as services:
        horde = start(services, folder)
        try:
            if options.flower:
                start_flower(horde)
            for clients in options.clients:
                baseline = asyncio.run(closed_loop(lambda session: bare(horde, session), clients=clients, seconds=3))
                load = partial(closed_loop, partial(complete, horde.front), clients=clients)
                asyncio.run(load(seconds=WARM_UP_SECONDS))
                before, used = counted(horde), used_by(horde)
                figures = asyncio.run(load(seconds=options.seconds))
                after, spent = counted(horde), spent_since(used, used_by(horde))
                report("roundtrip", figures, baseline)
                done = figures.calls + clients
                statements, messages = ((late - early) / done for early, late in zip(before, after, strict=True))
                print(f"           SQL statements {statements:.1f}, Celery messages {messages:.2f} a completion")
                tell_bars(figures, baseline, watched=options.flower)
                tell(Figure("statements", statements), Figure("messages", messages))
                parts = ", ".join(f"{name} {1000 * seconds / done:.1f}" for name, seconds in spent.items())
                print(f"           CPU ms a completion: {1000 * sum(spent.values()) / done:.1f} ({parts})")
            horde.require_sound(60)
            print("every invariant holds")
        finally:
            horde.close()


if __name__ == "__main__":
    main()
