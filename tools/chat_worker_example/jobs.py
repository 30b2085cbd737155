"""One job, from the pop's answer to a submit that the horde has taken."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from .backend import Backend, BackendError, BackendUnreachable
from .chat import Json, UnusableCompletion, call_of, reply_of
from .config import WorkerConfig
from .counting import PromptFit, PromptOverflow
from .events import emit
from .horde import HordeClient, HordeRefusal, HordeUnavailable, Receipt
from .judging import judge
from .media import FetchFailed, Media
from .progress import Progress
from .waiting import Backoff, Interrupted, Shutdown, pause, unless

DEFAULT_TTL_SECONDS = 150.0
GENERATION_SHARE = 0.95
"""The share of a job's ttl that generation may take; the rest is for the submit."""


class Fault(Exception):
    """The job cannot be answered; `code` is one of the fault codes of details D5, `detail` is for the log."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class Unwanted(Exception):
    """The horde wants no reply any more: the client cancelled, or the job ended otherwise."""


@dataclass(frozen=True)
class Job:
    """A popped job. Times are the event loop's, in seconds."""

    id: str
    payload: Json
    popped_at: float
    ttl: float

    @classmethod
    def from_answer(cls, answer: Json, now: float) -> "Job":
        """The job in a pop's answer."""
        ttl = answer.get("ttl") or DEFAULT_TTL_SECONDS
        return cls(id=answer["id"], payload=answer.get("payload") or {}, popped_at=now, ttl=float(ttl))


@dataclass(frozen=True)
class JobEnd:
    """How a job ended, in the log's words.

    `job_done` and `job_faulted` were taken by the horde; `job_refused` was not; `job_lost`
    never reached it; `job_cancelled` and `job_ended` were not wanted any more.
    """

    event: str
    fault: Fault | None = None
    receipt: Receipt | None = None

    @classmethod
    def of(cls, fault: Fault | None, receipt: Receipt | None) -> "JobEnd":
        """The end that follows from the fault and from what the horde answered."""
        if receipt is None:
            return cls("job_lost", fault)
        if receipt.status >= 400:
            return cls("job_refused", fault, receipt)
        return cls("job_faulted" if fault else "job_done", fault, receipt)

    @property
    def is_abort(self) -> bool:
        """Whether the horde counts it towards the hourly limit of aborted jobs."""
        refused = self.event == "job_refused" and self.receipt is not None and self.receipt.rc == "ChatReplyRefused"
        return self.event == "job_faulted" or refused


@dataclass(frozen=True)
class JobRunner:
    """Answers jobs with one backend. `fit` is None for a worker that declares no prompt_overflow_refused."""

    config: WorkerConfig
    horde: HordeClient
    backend: Backend
    media: Media
    model: str
    fit: PromptFit | None
    shutdown: Shutdown

    async def run(self, job: Job) -> JobEnd:
        """Answers the job or faults it, and submits; returns how it ended."""
        progress = Progress(
            self.horde,
            job.id,
            bool(job.payload.get("stream")),
            self.config.progress_seconds,
            self.config.heartbeat_seconds,
        )
        fault: Fault | None = None
        try:
            reply = await _beside(progress.run(), self._answer(job, progress))
            body: Json = {"id": job.id, "state": "ok", **reply}
        except Fault as raised:
            fault = raised
            body = {"id": job.id, "state": "faulted", "fault": fault.code}
        except Unwanted:
            return self._told(job, JobEnd(f"job_{progress.end}"), progress, {})
        seconds = _now() - job.popped_at
        end = JobEnd.of(fault, await self._submit(job, body))
        return self._told(job, end, progress, body, seconds)

    def _told(self, job: Job, end: JobEnd, progress: Progress, body: Json, seconds: float | None = None) -> JobEnd:
        emit(
            end.event,
            id=job.id,
            fault=end.fault.code if end.fault else None,
            detail=end.fault.detail if end.fault else None,
            seconds=round(_now() - job.popped_at if seconds is None else seconds, 3),
            usage=body.get("usage"),
            posts=progress.posts,
            submit=end.receipt.status if end.receipt else None,
            reward=end.receipt.reward if end.receipt else None,
        )
        return end

    async def _answer(self, job: Job, progress: Progress) -> Json:
        """The reply's part of the submit. Raises Fault or Unwanted."""
        try:
            async with asyncio.timeout_at(job.popped_at + job.ttl * GENERATION_SHARE):
                return await unless(self.shutdown.jobs_over, self._unless_over(progress, self._reply(job, progress)))
        except TimeoutError:
            raise Fault("timeout", f"no reply within {GENERATION_SHARE:.0%} of the job's {job.ttl:g} s") from None
        except Interrupted:
            raise Fault("shutdown", "the worker stops") from None
        except FetchFailed as error:
            raise Fault(error.code, error.reason) from None
        except PromptOverflow as overflow:
            raise Fault("prompt_overflow", str(overflow)) from None
        except BackendError as error:
            raise Fault("prompt_overflow" if error.overflow else "backend_error", error.reason) from None
        except UnusableCompletion as error:
            raise Fault("backend_error", str(error)) from None

    async def _unless_over(self, progress: Progress, work: Coroutine[Any, Any, Json]) -> Json:
        try:
            return await unless(progress.over, work)
        except Interrupted:
            raise Unwanted from None

    async def _reply(self, job: Job, progress: Progress) -> Json:
        messages = await self.media.messages(job.payload)
        call = call_of({**job.payload, "messages": messages}, self.model)
        return judge(reply_of(await self._completion(call, progress)), job.payload)

    async def _completion(self, call: Json, progress: Progress) -> Json:
        """Asks the backend; one that is being restarted is waited for, since nothing was begun there."""
        give_up_at = _now() + self.config.backend_patience_seconds
        backoff = Backoff(most=2.0)
        while True:
            try:
                if self.fit is not None:
                    await self.fit.check(call)
                return await self.backend.complete(call, progress.add)
            except BackendUnreachable:
                if _now() > give_up_at:
                    raise
                await backoff.wait()

    async def _submit(self, job: Job, body: Json) -> Receipt | None:
        """Repeats the submit until the horde has taken or refused it, or nobody can want it any more."""
        give_up_at = job.popped_at + job.ttl + self.config.keep_reply_seconds
        backoff = Backoff()
        over = self.shutdown.submits_over
        while _now() < give_up_at and not over.is_set():
            try:
                return await unless(over, self.horde.submit(body))
            except HordeUnavailable as error:
                emit("submit_failed", id=job.id, reason=error.reason)
                await pause(over, error.retry_after or backoff.next())
            except HordeRefusal as refusal:
                emit("submit_refused", id=job.id, rc=refusal.rc)
                return Receipt(refusal.status, None, refusal.rc)
            except Interrupted:
                break
        return None


async def _beside(companion: Coroutine[Any, Any, None], work: Coroutine[Any, Any, Json]) -> Json:
    """The result of the work, with a companion that is ended with it."""
    task = asyncio.create_task(companion)
    try:
        return await work
    finally:
        task.cancel()
        await asyncio.wait({task})


def _now() -> float:
    return asyncio.get_running_loop().time()
