"""The worker's life: wait for the backend, probe it, declare, then pop and answer until told to stop."""

import asyncio
import sys
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from . import VERSION
from .aborts import AbortBudget
from .assembling import Connections, Examined, connections, examine, runner_for
from .backend import BackendError
from .config import WorkerConfig
from .declaration import UnusableBackend
from .events import emit
from .health import Health
from .horde import HordeRefusal, HordeUnavailable
from .hours import quiet_seconds
from .jobs import Job, JobRunner
from .probe import ModelMissing
from .waiting import Backoff, Interrupted, Shutdown, on_stop_signal, pause, unless

HELD_SECONDS = 1.0
"""An empty answer that took longer was held by the horde, and the next pop may follow at once."""

LOOK_AGAIN_SECONDS = 10.0
"""A rest is reconsidered after this long: jobs that were running then may have ended well."""

LOOK_AT_BACKEND_SECONDS = 10.0
"""Before a job is asked for, the backend is looked at, unless that was done so recently."""

HOPELESS = frozenset({"InvalidAPIKey", "AnonForbiddenWorker", "WrongCredentials"})
"""Return codes that no repeat can cure: the configuration has to change."""

PROBE_SECONDS = 600.0
"""Time for one round of the probe, on slow hardware that still loads its model."""

EXIT_STOPPED = 0
EXIT_CONFIGURATION = 2


async def run_worker(config: WorkerConfig) -> int:
    """Runs until SIGTERM or SIGINT; returns the exit code."""
    shutdown = Shutdown(config.stop_grace_seconds)
    on_stop_signal(shutdown.request)
    health = Health(config.health_file)
    emit("starting", version=VERSION, worker=config.worker_name, horde=config.horde_url, backend=config.backend_url)
    async with connections(config) as to:
        prepare = partial(_prepare, config, to, shutdown, health)
        try:
            examined, runner = await unless(shutdown.requested, prepare())
        except Interrupted:
            return _ended(health, EXIT_STOPPED)
        except (ModelMissing, UnusableBackend) as error:
            sys.stderr.write(f"{error}\n")
            return _ended(health, EXIT_CONFIGURATION)
        return _ended(health, await Worker(config, examined, runner, health, prepare).run())


async def _prepare(
    config: WorkerConfig, to: Connections, shutdown: Shutdown, health: Health
) -> tuple[Examined, JobRunner]:
    """Repeats the probe until the backend is there."""
    health.report("waiting_for_backend")
    backoff = Backoff()
    while True:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                examined = await examine(config, to)
        except BackendError as error:
            emit("backend_waiting", reason=error.reason)
        except TimeoutError:
            emit("backend_waiting", reason=f"the probe took longer than {PROBE_SECONDS:g} s")
        else:
            emit("declared", **examined.summary())
            return examined, runner_for(config, to, examined, shutdown)
        await backoff.wait()


def _ended(health: Health, code: int) -> int:
    health.remove()
    emit("stopped", exit_code=code, done=health.done, failed=health.failed, kudos=round(health.kudos, 2))
    return code


@dataclass
class Worker:
    """The pop loops, one a thread, and what they share."""

    config: WorkerConfig
    examined: Examined
    runner: JobRunner
    health: Health
    prepare: Callable[[], Coroutine[Any, Any, tuple[Examined, JobRunner]]]
    """Probes the backend anew, once it is there."""
    _exit_code: int = EXIT_STOPPED
    _under_way: int = 0
    """Pops that may bring a job, and jobs."""
    _resting: str | None = None
    _warned: list[object] = field(default_factory=list)
    _backend_backoff: Backoff = field(default_factory=lambda: Backoff(most=60.0))
    _backend_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._aborts = AbortBudget(self.config.abort_limit, self.config.abort_window_seconds)
        self._look_at = asyncio.get_running_loop().time() + LOOK_AT_BACKEND_SECONDS

    async def run(self) -> int:
        """Runs all threads to their end; returns the exit code."""
        self.health.report("ready")
        async with asyncio.TaskGroup() as threads:
            for _ in range(self.config.threads):
                threads.create_task(self._thread())
            threads.create_task(self._announce_stop())
        return self._exit_code

    async def _announce_stop(self) -> None:
        await self.runner.shutdown.requested.wait()
        emit("stopping", grace_seconds=self.config.stop_grace_seconds)
        self.health.report("stopping")

    async def _thread(self) -> None:
        empty = Backoff(first=1.0, most=3.0)
        shutdown = self.runner.shutdown
        while await self._may_pop():
            asked_at = asyncio.get_running_loop().time()
            self._under_way += 1
            try:
                job = await self._pop()
                if job is not None:
                    empty.reset()
                    await self._serve(job)
            finally:
                self._under_way -= 1
            if job is not None:
                continue
            if asyncio.get_running_loop().time() - asked_at < HELD_SECONDS:
                await pause(shutdown.requested, empty.next())

    async def _may_pop(self) -> bool:
        """Waits while the backend is down or the worker rests; False once it stops."""
        requested = self.runner.shutdown.requested
        async with self._backend_lock:
            while not requested.is_set():
                why, seconds = self._rest()
                if why != self._resting:
                    self._resting = why
                    emit("resting" if why else "rested", reason=why, seconds=round(seconds))
                if why is None:
                    if asyncio.get_running_loop().time() >= self._look_at:
                        await self._look()
                    return not requested.is_set()
                self.health.report("resting")
                await pause(requested, min(seconds, LOOK_AGAIN_SECONDS))
        return False

    def _rest(self) -> tuple[str | None, float]:
        """Why no job is asked for just now, and for how many seconds at most."""
        quiet = quiet_seconds(self.config.quiet_hours, datetime.now().astimezone())
        if quiet:
            return "quiet hours", quiet
        aborts = self._aborts.wait_seconds(asyncio.get_running_loop().time(), self._under_way)
        return ("close to the limit of aborted jobs" if aborts else None), aborts

    async def _pop(self) -> Job | None:
        """One job, or None. The pop_key stays the same until an answer arrives (details D15)."""
        shutdown = self.runner.shutdown
        body = {**self.examined.declaration.pop_body(self.config), "pop_key": uuid.uuid4().hex}
        backoff = Backoff()
        while True:
            try:
                answer = await unless(shutdown.pops_over, self.runner.horde.pop(body))
            except HordeUnavailable as error:
                emit("pop_failed", reason=error.reason)
                if shutdown.requested.is_set():
                    return None
                self.health.report("horde_unreachable")
                await pause(shutdown.requested, error.retry_after or backoff.next())
            except HordeRefusal as refusal:
                await self._refused(refusal)
                return None
            except Interrupted:
                return None
            else:
                self._heard(answer)
                now = asyncio.get_running_loop().time()
                return Job.from_answer(answer, now) if answer.get("id") else None

    def _heard(self, answer: Mapping[str, object]) -> None:
        skipped = answer.get("skipped")
        self.health.skipped = skipped if isinstance(skipped, dict) else {}
        if not self.runner.shutdown.requested.is_set():
            self.health.report("ready")
        warnings = answer.get("declaration_warnings") or []
        if isinstance(warnings, list) and warnings != self._warned:
            self._warned = warnings
            emit("declaration_warnings", warnings=warnings)

    async def _refused(self, refusal: HordeRefusal) -> None:
        """Stops the worker when only the operator can help, else waits for somebody to lift the refusal."""
        event = "maintenance" if refusal.rc in {"WorkerMaintenance", "MaintenanceMode"} else "pop_refused"
        emit(event, status=refusal.status, rc=refusal.rc, message=refusal.message)
        if refusal.status == 401 or refusal.rc in HOPELESS:
            if not self.runner.shutdown.requested.is_set():
                sys.stderr.write(
                    f"the horde refuses this worker: {refusal.message} (check HORDE_API_KEY, WORKER_NAME)\n"
                )
                self._exit_code = EXIT_CONFIGURATION
                self.runner.shutdown.request()
            return
        self.health.report("refused")
        await pause(self.runner.shutdown.requested, Backoff(first=self.config.refused_pause_seconds).next())

    async def _serve(self, job: Job) -> None:
        is_offloaded = bool(job.payload.get("messages_url"))
        emit("job_popped", id=job.id, ttl=job.ttl, stream=bool(job.payload.get("stream")), offloaded=is_offloaded)
        end = await self.runner.run(job)
        self.health.count(end)
        if end.is_abort:
            self._aborts.record(asyncio.get_running_loop().time())
        if end.fault is None:
            self._backend_backoff.reset()
        elif end.fault.code == "backend_error":
            await self._recover()

    async def _recover(self) -> None:
        """Holds all new pops back until the backend answers: each job popped before would be one more fault.

        A backend that answers is not at fault for what one job asks of it.
        """
        shutdown = self.runner.shutdown
        async with self._backend_lock:
            if await self.runner.backend.is_up():
                self._backend_backoff.reset()
            else:
                emit("backend_waiting", reason="a job failed and the backend does not answer")
                await pause(shutdown.requested, self._backend_backoff.next())
            await self._look()

    async def _look(self) -> None:
        """Waits until the backend is there. One that came back as another is probed anew, and declared as it is now."""
        requested = self.runner.shutdown.requested
        try:
            if not await unless(requested, self._is_as_examined()):
                emit("backend_changed")
                self.examined, self.runner = await unless(requested, self.prepare())
        except Interrupted:
            return
        except (ModelMissing, UnusableBackend) as error:
            sys.stderr.write(f"{error}\n")
            self._exit_code = EXIT_CONFIGURATION
            self.runner.shutdown.request()
        self._look_at = asyncio.get_running_loop().time() + LOOK_AT_BACKEND_SECONDS

    async def _is_as_examined(self) -> bool:
        backoff = Backoff()
        while True:
            try:
                return await self.examined.still_holds(self.config)
            except BackendError:
                emit("backend_waiting", reason="the backend does not answer")
                self.health.report("backend_down")
                await backoff.wait()
