"""Breaks a horde under steady load in every way there is, by a seed, and then asks whether anything was lost.

    python -m tests.chaos.runner --seed 3 --seconds 60 [--longest 30] [--only "kill web" ...]

Starts a horde of real processes, with clients and workers of every kind. Faults follow the
seed: the same seed, length and machine give the same faults at the same times. Eight seeds
in a row that begin at a multiple of eight meet every fault. Once the last is mended, the horde
has to come to rest by itself, and everything in `reckoning.py` has to be true of it. Exit code
1, with what is not true, the seed and the schedule, when it is not.
"""

import argparse
import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import aiohttp

from tests.chaos import reckoning
from tests.chaos.clients import PATIENCE_SECONDS, Asked, Clients
from tests.chaos.faults import Faults
from tests.chaos.messages import MessageTap
from tests.chaos.schedule import LONGEST, Step, cut_lines, every_fault, schedule
from tests.chaos.workers import Delivered, Workers
from tests.support.databases import upgrade
from tests.support.file_server import FileServer
from tests.support.horde import HordeProcesses
from tests.support.pictures import picture
from tests.support.services import LocalServices, RunningService, wait_until
from tests.support.tcp_proxy import TcpProxy

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
"""Gives a process a false clock, where it is installed."""

DISK_SIZE = "400m"
WARM_UP_SECONDS = 2.0
CALM_SECONDS = 5.0
"""Load goes on this long after the last fault."""

SETTLING_SECONDS = 40.0
REST_SECONDS = 120.0
"""By then every request has passed its deadline and what the horde allows itself beyond."""

SETTINGS = {
    "REQUEST_TTL_SECONDS": "30",
    "DEFAULT_DEADLINE_SECONDS": "30",
    "EXPIRY_MARGIN_SECONDS": "5",
    "HEARTBEAT_SECONDS": "6",
    "USER_CONCURRENCY": "100000",
    "IMAGE_FETCH_SECONDS": "4",
    "STORAGE_PATIENCE_SECONDS": "20",
    "MEDIA_ORPHAN_SECONDS": "10",
    "VERDICT_WAIT_SECONDS": "2",
}
"""Times made short, so that a request's whole life fits a run."""

VARIABLES = {
    "postgres": "DATABASE_URL",
    "redis": "REDIS_URL",
    "s3": "S3_ENDPOINT_URL",
    "web": "NATIVE_URLS",
    "front": "HORDE_URL",
    "backend": "BACKEND_URL",
}
"""By what a process finds the other end of a line."""


@dataclass
class Run:
    """A finished run."""

    seed: int
    steps: list[Step]
    asked: list[Asked] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    folder: Path = Path()
    mark: str = ""
    """What the texts of its requests have in common."""

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", *map(str, self.steps), reckoning.tally(self.asked)]
        lines += [f"{len(self.asked)} requests, {len(self.delivered)} replies by workers at hand"]
        if self.findings:
            return "\n".join([*lines, *self.findings, f"logs {self.folder}"])
        return "\n".join([*lines, "nothing was lost, doubled or left behind"])


@contextmanager
def small_disks(services: LocalServices) -> Iterator[dict[str, Path]]:
    """Put each service on a file system of its own that can be filled; none where this may not be done."""
    disks: dict[str, Path] = {}
    with ExitStack() as stack:
        for service in (services.postgres, services.redis, services.s3):
            disk = stack.enter_context(small_disk(service))
            if disk is not None:
                (services.home / service.name).symlink_to(disk)
                disks[service.name] = disk
        yield disks


@contextmanager
def small_disk(service: RunningService) -> Iterator[Path | None]:
    """Mount a small file system while the block runs, at whose end the service stops; None where that is forbidden."""
    place = Path(tempfile.mkdtemp(prefix="horde-chaos-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE},mode=0755", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        place.rmdir()
        yield None
        return
    try:
        yield place
    finally:
        service.stop()
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def through(url: str, proxy: TcpProxy) -> str:
    """The URL by way of a proxy."""
    parts, at = urlsplit(url), urlsplit(proxy.url)
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return urlunsplit(parts._replace(netloc=f"{login}{at.netloc}"))


def once_at_rest(check: Callable[[], list[str]]) -> list[str]:
    """What a check still finds after a while."""
    try:
        wait_until(lambda: not check(), SETTLING_SECONDS, "not at rest")
    except AssertionError:
        return check()
    return []


def say(line: str) -> None:
    """Tell whoever watches."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Chaos:
    """One run: services, horde, load and faults."""

    def __init__(self, seed: int, seconds: float, longest: float = LONGEST, only: Sequence[str] = ()) -> None:
        self.seed = seed
        self.seconds = seconds
        self.longest = longest
        self.only = only
        self.folder = Path(tempfile.mkdtemp(prefix=f"horde-chaos-{seed}-"))

    def go(self) -> Run:
        """Do it all."""
        with ExitStack() as stack:
            services = LocalServices({})
            disks = stack.enter_context(small_disks(services))
            stack.enter_context(services)
            clock = self.folder / "clock" if FAKETIME is not None else None
            faults = self.only or every_fault(clock=clock is not None, disk=bool(disks))
            run = Run(self.seed, schedule(self.seed, self.seconds, faults, longest=self.longest), folder=self.folder)
            files = stack.enter_context(FileServer())
            horde, lines = self._horde(stack, services, run.steps, files, clock)
            tap = MessageTap(services.redis_url)
            stack.callback(tap.close)
            chance = random.Random(self.seed)  # noqa: S311 - chances of a test
            breaking = Faults(horde, lines, tap, clock=clock, disks=disks, chance=chance)
            horde.start("fetch")
            horde.start_all()
            asyncio.run(self._load(run, horde, breaking, files))
            run.findings += breaking.complaints
            self._reckon(run, horde, services)
            horde.close()
            run.findings += self._left(horde)
        if not run.findings:
            shutil.rmtree(self.folder)
        return run

    def _horde(
        self, stack: ExitStack, services: LocalServices, steps: list[Step], files: FileServer, clock: Path | None
    ) -> tuple[HordeProcesses, dict[str, TcpProxy]]:
        """A horde, not started, with a proxy in every line that is to break."""
        upgrade(services.database_url, services.redis_url)
        own: dict[str, dict[str, str]] = {}
        lines: dict[str, TcpProxy] = {}
        settings = SETTINGS | {"IMAGE_FETCH_ALLOWED_HOSTS": files.host}
        settings["S3_PUBLIC_ENDPOINT_URL"] = services.s3_endpoint_url
        horde = HordeProcesses(services, services.database_url, self.folder, settings, own)
        urls = {
            "postgres": services.database_url,
            "redis": services.redis_url,
            "s3": services.s3_endpoint_url,
            "web": horde.native,
            "front": horde.front,
            "backend": horde.backend,
        }
        for line in sorted(cut_lines(steps)):
            name, _, other = line.partition("-")
            lines[line] = stack.enter_context(TcpProxy(urls[other]))
            own.setdefault(name, {})[VARIABLES[other]] = through(urls[other], lines[line])
        if clock is not None and any(step.verb == "skew" for step in steps):
            clock.write_text("+0")
            # Python cannot sleep where only the clock on the wall is false.
            own.setdefault("beat", {}).update(
                LD_PRELOAD=str(FAKETIME), FAKETIME_TIMESTAMP_FILE=str(clock), FAKETIME_NO_CACHE="1"
            )
        stack.callback(horde.close)
        return horde, lines

    async def _load(self, run: Run, horde: HordeProcesses, breaking: Faults, files: FileServer) -> None:
        """Ask and serve while the faults come and go, and for a while after."""
        model = f"hand-{uuid4().hex[:8]}"
        remote = files.serve("/picture.png", picture())
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:
            chance = random.Random(self.seed)  # noqa: S311 - chances of a test
            workers = Workers(horde, http, model, chance)
            clients = Clients(horde, http, model, remote, chance)
            working = asyncio.create_task(workers.go_on())
            await asyncio.sleep(WARM_UP_SECONDS)
            asking = asyncio.create_task(clients.go_on())
            await self._break(run.steps, breaking)
            await asyncio.to_thread(breaking.mend)
            await asyncio.sleep(CALM_SECONDS)
            clients.over.set()
            await asking
            await self._until_ended(horde)
            workers.over.set()
            await working
        run.asked, run.delivered = clients.asked, workers.delivered
        run.findings += reckoning.shortened("workers were told what no worker should be", workers.strange)
        run.mark = clients.run

    async def _break(self, steps: list[Step], breaking: Faults) -> None:
        """Apply every fault in its time; of one subject, one at a time."""
        began = time.monotonic()
        locks: dict[str, asyncio.Lock] = {}

        async def apply(step: Step) -> None:
            await asyncio.sleep(began + step.at - time.monotonic())
            async with locks.setdefault(step.subject, asyncio.Lock()):
                say(f"{time.monotonic() - began:6.1f} s  {step.fault} for {step.seconds:.1f} s")
                block = breaking.of(step)
                await asyncio.to_thread(block.__enter__)
                try:
                    await asyncio.sleep(step.seconds)
                finally:
                    await asyncio.to_thread(block.__exit__, None, None, None)

        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(apply(step))

    async def _until_ended(self, horde: HordeProcesses) -> None:
        """Wait until nothing is open, as long as the horde may take; what is open then is found later."""
        until = time.monotonic() + REST_SECONDS
        while time.monotonic() < until:
            rows = await asyncio.to_thread(horde.query, "SELECT count(*) FROM horde_requests WHERE ended_at IS NULL")
            if rows == [(0,)]:
                return
            await asyncio.sleep(0.5)

    def _reckon(self, run: Run, horde: HordeProcesses, services: LocalServices) -> None:
        """Write down everything that is not as it must be."""
        bucket = services.home / "s3" / services.s3_bucket
        run.findings += once_at_rest(lambda: horde.violations(at_rest=True))
        run.findings += once_at_rest(lambda: reckoning.leaks(horde, bucket))
        run.findings += reckoning.client_faults(horde, run.mark, run.asked)
        run.findings += reckoning.worker_faults(horde, run.delivered)
        run.findings += reckoning.money_faults(horde)

    def _left(self, horde: HordeProcesses) -> list[str]:
        """Processes and connections that outlived their horde."""
        own = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'horde-%'"
        try:
            wait_until(lambda: horde.query(own) == [(0,)], 10, "connections are left")
        except AssertionError:
            rows = horde.query("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'horde-%'")
            return reckoning.shortened("connections of nobody", [str(row[0]) for row in rows])
        return reckoning.left_processes(self.folder)


def main() -> None:
    """Run one seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds that a fault lasts at most")
    parser.add_argument("--only", nargs="+", default=[], metavar="FAULT", help="these faults, as 'kill web'")
    options = parser.parse_args()
    run = Chaos(options.seed, options.seconds, options.longest, options.only).go()
    sys.stdout.write(f"{run}\n")
    sys.exit(bool(run.findings))


if __name__ == "__main__":
    main()
