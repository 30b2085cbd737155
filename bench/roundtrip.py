"""What the whole horde adds to a chat: client → front → native → worker → verification → client.

    python -m bench.roundtrip [--seconds 10] [--clients 1 8 32]

Starts a throw-away horde (every Procfile process, an instant scripted backend, one
worker with 8 threads, all on this machine), loads it with closed-loop clients, and
prints latency, completions a second, and the same load on the front's bare health
route as the baseline of the run. SQL statements and Celery messages a completion
come from the horde's own metrics; CPU a completion, by process, from the system.
"""

import argparse
import asyncio
import os
import tempfile
from pathlib import Path
from uuid import uuid4

import aiohttp
from alembic import command
from alembic.config import Config

from bench.cpu import spent_since, used_by
from bench.load import Figures, closed_loop
from config.settings import get_settings
from tests.conftest import as_admin, url_of
from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import LocalServices

DATABASE = "horde_bench"
AS_SHIPPED = {
    "SWEEP_SECONDS": "5",
    "RESCUE_AFTER_SECONDS": "5",
    "FALLBACK_POLL_SECONDS": "10",
    "USER_CONCURRENCY": "100000",
}
"""The periods as they come; one key asks for all clients, so its limit is out of the way."""
DURABLE: dict[str, str] = {}
"""PostgreSQL as it comes: every commit reaches the disk."""

BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Hello, horde. " * 20}], "max_tokens": 64}


def start(services: LocalServices, folder: Path) -> HordeProcesses:
    """Start a horde on a database of its own."""
    as_admin(services, f"CREATE DATABASE {DATABASE}")
    os.environ.update(DATABASE_URL=url_of(services, DATABASE), REDIS_URL=services.redis_url)
    get_settings.cache_clear()
    command.upgrade(Config("alembic.ini"), "head")
    horde = HordeProcesses(services, url_of(services, DATABASE), folder, AS_SHIPPED)
    horde.start_all()
    return horde


async def complete(horde: HordeProcesses, session: aiohttp.ClientSession) -> None:
    """Ask for one completion and check that it is one."""
    headers = {"Authorization": f"Bearer {KEYS.demo}"}
    async with session.post(f"{horde.front}/v1/chat/completions", json=BODY, headers=headers) as response:
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


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=f"horde-bench-{uuid4().hex[:8]}-"))
    with LocalServices(DURABLE) as services:
        horde = start(services, folder)
        try:
            for clients in options.clients:
                baseline = asyncio.run(closed_loop(lambda session: bare(horde, session), clients=clients, seconds=3))
                before, used = counted(horde), used_by(horde)
                figures = asyncio.run(
                    closed_loop(lambda session: complete(horde, session), clients=clients, seconds=options.seconds)
                )
                after, spent = counted(horde), spent_since(used, used_by(horde))
                report("roundtrip", figures, baseline)
                done = figures.calls + clients
                print(
                    f"           SQL statements {(after[0] - before[0]) / done:.1f}, "
                    f"Celery messages {(after[1] - before[1]) / done:.2f} a completion"
                )
                parts = ", ".join(f"{name} {1000 * seconds / done:.1f}" for name, seconds in spent.items())
                print(f"           CPU ms a completion: {1000 * sum(spent.values()) / done:.1f} ({parts})")
            horde.require_sound(60)
            print("every invariant holds")
        finally:
            horde.close()


if __name__ == "__main__":
    main()
