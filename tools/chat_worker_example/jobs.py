"""One job, from the pop's answer to a submit that the horde has taken."""

import asyncio
from dataclasses import dataclass

from .backend import Backend, BackendError, BackendUnreachable
from .chat import Json, UnusableCompletion, call_of, reply_of
from .counting import PromptFit, PromptOverflow
from .events import emit
from .horde import HordeClient, HordeRefusal, HordeUnavailable, Receipt
from .waiting import Backoff, Interrupted, Shutdown, pause, unless

DEFAULT_TTL_SECONDS = 150.0
GENERATION_SHARE = 0.95
"""The share of a job's ttl that generation may take; the rest is for the submit."""

KEEP_REPLY_SECONDS = 1200.0
"""A reply is kept and offered this long after its ttl: the life of a request, so nobody can want it later."""


class Fault(Exception):
    """The job cannot be answered; `code` is one of the fault codes of details D5, `detail` is for the log."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


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
    never reached it.
    """

    event: str
    fault: Fault | None

    @classmethod
    def of(cls, fault: Fault | None, receipt: Receipt | None) -> "JobEnd":
        """The end that follows from the fault and from what the horde answered."""
        if receipt is None:
            return cls("job_lost", fault)
        if receipt.status >= 400:
            return cls("job_refused", fault)
        return cls("job_faulted" if fault else "job_done", fault)


@dataclass(frozen=True)
class JobRunner:
    """Answers jobs with one backend. `fit` is None for a worker that declares no prompt_overflow_refused."""

    horde: HordeClient
    backend: Backend
    model: str
    fit: PromptFit | None
    shutdown: Shutdown
    backend_patience_seconds: float

    async def run(self, job: Job) -> JobEnd:
        """Answers the job or faults it, and submits; returns how it ended."""
        fault: Fault | None = None
        try:
            body: Json = {"id": job.id, "state": "ok", **await self._answer(job)}
        except Fault as raised:
            fault = raised
            body = {"id": job.id, "state": "faulted", "fault": fault.code}
        generated_at = asyncio.get_running_loop().time()
        receipt = await self._submit(job, body)
        end = JobEnd.of(fault, receipt)
        emit(
            end.event,
            id=job.id,
            fault=fault.code if fault else None,
            detail=fault.detail if fault else None,
            seconds=round(generated_at - job.popped_at, 3),
            usage=body.get("usage"),
            submit=receipt.status if receipt else None,
            reward=receipt.reward if receipt else None,
        )
        return end

    async def _answer(self, job: Job) -> Json:
        """The reply's part of the submit. Raises Fault."""
        if not isinstance(job.payload.get("messages"), list):
            raise Fault("messages_fetch_failed", "the job carries no messages")
        call = call_of(job.payload, self.model)
        try:
            async with asyncio.timeout_at(job.popped_at + job.ttl * GENERATION_SHARE):
                return await unless(self.shutdown.jobs_over, self._generate(call))
        except TimeoutError:
            raise Fault("timeout", f"no reply within {GENERATION_SHARE:.0%} of the job's {job.ttl:g} s") from None
        except Interrupted:
            raise Fault("shutdown", "the worker stops") from None
        except PromptOverflow as overflow:
            raise Fault("prompt_overflow", str(overflow)) from None
        except BackendError as error:
            raise Fault("prompt_overflow" if error.overflow else "backend_error", error.reason) from None
        except UnusableCompletion as error:
            raise Fault("backend_error", str(error)) from None

    async def _generate(self, call: Json) -> Json:
        """Asks the backend; one that is being restarted is waited for, since nothing was begun there."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self.backend_patience_seconds
        backoff = Backoff(most=2.0)
        while True:
            try:
                if self.fit is not None:
                    await self.fit.check(call)
                return reply_of(await self.backend.complete(call))
            except BackendUnreachable:
                if loop.time() > give_up_at:
                    raise
                await asyncio.sleep(backoff.next())

    async def _submit(self, job: Job, body: Json) -> Receipt | None:
        """Repeats the submit until the horde has taken or refused it, or nobody can want it any more."""
        give_up_at = job.popped_at + job.ttl + KEEP_REPLY_SECONDS
        backoff = Backoff()
        loop = asyncio.get_running_loop()
        over = self.shutdown.submits_over
        while loop.time() < give_up_at and not over.is_set():
            try:
                return await unless(over, self.horde.submit(body))
            except HordeUnavailable as error:
                emit("submit_failed", id=job.id, reason=error.reason)
                await pause(over, error.retry_after or backoff.next())
            except HordeRefusal as refusal:
                emit("submit_refused", id=job.id, rc=refusal.rc)
                return Receipt(refusal.status, None)
            except Interrupted:
                break
        return None
