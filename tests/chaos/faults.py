"""Each fault of the chaos runner: a block that breaks something while it runs, and mends it at its end."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psutil
from redis import Redis

from tests.chaos.messages import MessageTap
from tests.chaos.schedule import Step
from tests.support.horde import HordeProcesses
from tests.support.services import RunningService
from tests.support.tcp_proxy import TcpProxy

TERMINATION_SECONDS = 28
"""A process that is told to end has ended by then (reliability A3, bar 5)."""

SKEW = "+3600"
REPEATS = 3


class Faults:
    """The faults of one horde. What a process does wrong when it is told to end is kept in `complaints`."""

    def __init__(
        self,
        horde: HordeProcesses,
        lines: dict[str, TcpProxy],
        tap: MessageTap,
        *,
        clock: Path | None,
        disks: Mapping[str, Path],
        chance: random.Random,
    ) -> None:
        self.complaints: list[str] = []
        self._horde = horde
        self._lines = lines
        self._tap = tap
        self._clock = clock
        self._disks = disks
        self._chance = chance
        self._verbs: dict[str, Callable[[str], AbstractContextManager[None]]] = {
            "kill": self._killed,
            "kill-child": self._child_killed,
            "freeze": self._frozen,
            "terminate": self._terminated,
            "restart": self._stopped_service,
            "stop": self._stopped_service,
            "crash": self._crashed_service,
            "pause": self._paused_service,
            "flush": self._flushed,
            "cut": lambda line: self._lines[line].down(),
            "stall": lambda line: self._lines[line].stalled(),
            "repeat": self._repeated,
            "double": self._doubled,
            "skew": self._skewed,
            "fill": self._filled,
        }

    def of(self, step: Step) -> AbstractContextManager[None]:
        """The block in which this step's fault is there."""
        if step.subject in self._horde.running:
            self._require_alive(step.subject)
        return self._verbs[step.verb](step.subject)

    def mend(self) -> None:
        """Start again whatever a fault took down for good."""
        services = self._horde.services
        for service in (services.postgres, services.redis, services.s3):
            if not service.is_answering:
                service.kill()
                service.start()
        for name in list(self._horde.running):
            self._require_alive(name)

    def _require_alive(self, name: str) -> None:
        """Note a process that ended although nobody told it to, and start it as a platform would."""
        if not self._horde.is_alive(name):
            self.complaints.append(f"{name} ended by itself with {self._horde.running[name].returncode}")
            self._horde.restart(name)

    @contextmanager
    def _killed(self, name: str) -> Iterator[None]:
        self._horde.kill(name)
        try:
            yield
        finally:
            self._horde.start(name)

    @contextmanager
    def _child_killed(self, name: str) -> Iterator[None]:
        children = psutil.Process(self._horde.running[name].pid).children(recursive=True)
        if children:
            with suppress(psutil.NoSuchProcess):
                self._chance.choice(children).kill()
        yield

    @contextmanager
    def _frozen(self, name: str) -> Iterator[None]:
        self._horde.freeze(name)
        try:
            yield
        finally:
            self._horde.thaw(name)

    @contextmanager
    def _terminated(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        code = self._horde.stop(name)
        took = time.monotonic() - began
        if took > TERMINATION_SECONDS:
            self.complaints.append(f"{name} took {took:.1f} s to end after SIGTERM (exit {code})")
        try:
            yield
        finally:
            self._horde.start(name)

    def _service(self, name: str) -> RunningService:
        services = self._horde.services
        return {"postgres": services.postgres, "redis": services.redis, "s3": services.s3}[name]

    @contextmanager
    def _stopped_service(self, name: str) -> Iterator[None]:
        self._service(name).stop()
        try:
            yield
        finally:
            self._service(name).start()

    @contextmanager
    def _crashed_service(self, name: str) -> Iterator[None]:
        self._service(name).kill()
        try:
            yield
        finally:
            self._service(name).start()

    def _paused_service(self, name: str) -> AbstractContextManager[None]:
        return self._service(name).frozen()

    @contextmanager
    def _flushed(self, _name: str) -> Iterator[None]:
        with Redis.from_url(self._horde.services.redis_url) as redis:
            redis.flushall()
        yield

    @contextmanager
    def _repeated(self, _name: str) -> Iterator[None]:
        """Send messages of this run again, several times and in another order."""
        messages = self._tap.seen * REPEATS
        self._chance.shuffle(messages)
        self._tap.send(messages)
        yield

    @contextmanager
    def _doubled(self, name: str) -> Iterator[None]:
        """Run a second one beside the first, with a home of its own."""
        twin = f"{name}2"
        home = self._horde.folder / twin
        home.mkdir(exist_ok=True)
        self._horde.start(twin, HORDE_HOME=str(home))
        try:
            yield
        finally:
            self._horde.kill(twin)

    @contextmanager
    def _skewed(self, _name: str) -> Iterator[None]:
        """Put beat's clock an hour forward, and back."""
        assert self._clock is not None
        self._clock.write_text(SKEW)
        try:
            yield
        finally:
            self._clock.write_text("+0")

    @contextmanager
    def _filled(self, name: str) -> Iterator[None]:
        """Leave a service no room on its disk. One that did not survive that is started again."""
        filler, service = self._disks[name] / "filler", self._service(name)
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 2**16)
        try:
            yield
        finally:
            filler.unlink()
            if not service.is_answering:
                service.kill()
                service.start()
