"""`POST /api/v2/generate/text/pop`: forwarded, and held while there is no job (native-api N3, details D16)."""

import asyncio
import time

from quart import Blueprint, Response

from app.domain.addresses import source_of
from app.domain.capabilities import Declaration, parse_declaration
from app.domain.errors import HordeError
from app.domain.json_boundary import parse_worker_object
from front import errors
from front.bodies import read_body
from front.context import Front
from front.errors import FrontError
from front.exchange import Exchange, current_exchange
from front.forwarding import request_headers, response_headers, target_path
from front.held_pop import LONGEST_WAIT_SECONDS, PopWaiter
from front.native import Answer, NativeApi, Unreachable
from front.responses import native_problem

RELEASE_PAUSES_SECONDS = (0.0, 0.5, 2.0, 5.0)
"""Before each attempt to give a job back; its lease ends what none of them reached."""


def pop_blueprint(front: Front) -> Blueprint:
    """The held pop, under both prefixes."""
    blueprint = Blueprint("pop", __name__)

    async def pop() -> Response:
        exchange = current_exchange()
        try:
            source = source_of(exchange.address)
            body = await read_body(exchange, front.bodies, source, front.settings.body_read_seconds)
            exchange.let_body_go()
            answer = await _HeldPop(front, exchange, body).answer()
        except FrontError as error:
            return native_problem(error.problem)
        except Unreachable:
            return native_problem(errors.unreachable())
        front.metrics.pop_answered(with_job=job_id(answer) is not None)
        response = Response(answer.body, status=answer.status)
        response.headers.extend(response_headers(answer.headers))
        response.headers["Content-Type"] = answer.headers.get("Content-Type", "application/json")
        return response

    for name, path in (("api", "/api/v2/generate/text/pop"), ("short", "/v2/generate/text/pop")):
        blueprint.add_url_rule(path, name, pop, methods=["POST"], provide_automatic_options=False)
    return blueprint


def job_id(answer: Answer) -> str | None:
    """The job in a pop's answer."""
    body = answer.json() if answer.status == 200 else None
    job = None if body is None else body.get("id")
    return job if isinstance(job, str) else None


def job_ids(answer: Answer) -> list[str]:
    """All jobs in a pop's answer: a text worker may take several generations of a request at once."""
    first, body = job_id(answer), answer.json()
    ids = [] if body is None else body.get("ids")
    if first is None or not isinstance(ids, list):
        return [] if first is None else [first]
    return list(dict.fromkeys([first, *(each for each in ids if isinstance(each, str))]))


def worker_id(answer: Answer) -> str | None:
    """The id under which the native API knows the worker that popped."""
    body = answer.json() if answer.status == 200 else None
    known = None if body is None else body.get("worker_id")
    return known if isinstance(known, str) else None


async def give_back(native: NativeApi, job: str) -> bool:
    """Release a job whose worker has gone. Whether a root took it."""
    for pause in RELEASE_PAUSES_SECONDS:
        await asyncio.sleep(pause)
        try:
            answer = await native.release(job)
        except Unreachable:
            continue
        if answer.status < 500:
            return answer.status < 400
    return False


class _HeldPop:
    """One worker's pop. Its headers are made anew for each call, so that a thousand held pops do not keep them."""

    def __init__(self, front: Front, exchange: Exchange, body: bytes) -> None:
        self._front = front
        self._exchange = exchange
        self._body = body
        self._path = target_path()

    async def answer(self) -> Answer:
        """What the native API says, at the latest after the wait.

        Raises Unreachable when the first pop reached no root.
        """
        held = self._holding()
        if held is None:
            return await self._pop()
        declaration, seconds = held
        until = time.monotonic() + seconds
        waiter = self._front.pops.join(declaration)
        self._exchange.on_close(lambda: self._front.pops.leave(waiter))
        self._exchange.on_close(self._front.drain.at_start(waiter.ring))
        answer = await self._pop()
        waiter.worker_id = worker_id(answer)
        while _is_empty(answer) and await self._is_due(waiter, until):
            answer = await self._pop_again(waiter, answer)
        self._front.pops.leave(waiter)
        return answer

    async def _is_due(self, waiter: PopWaiter, until: float) -> bool:
        """Wait for a reason to pop again. False when the hold is over, or the process stops."""
        waiter.popping = False
        while not self._front.drain.started and (left := until - time.monotonic()) > 0:
            if await self._front.pops.wait(waiter, left):
                return not self._front.drain.started and time.monotonic() < until
        return False

    async def _pop_again(self, waiter: PopWaiter, last: Answer) -> Answer:
        """Pop for one wake. An answer that was lost leaves the last one in force."""
        wake = waiter.next_wake()
        try:
            answer = await self._pop()
        except Unreachable:
            answer = last
        if wake is not None and _is_empty(answer):
            self._front.pops.pass_on(wake, waiter)
        return answer

    def _holding(self) -> tuple[Declaration, float] | None:
        """What to hold this pop for, and how long; None when the native API has to speak first."""
        try:
            body = parse_worker_object(self._body)
            declaration, _ = parse_declaration(body)
        except HordeError:
            return None
        wait = body.get("wait")
        if wait is None:
            wait = self._front.settings.pop_wait_seconds
        if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 < wait <= LONGEST_WAIT_SECONDS:
            return None
        release = self._front.admission.hold()
        if release is None:
            return None
        self._exchange.on_close(release)
        return declaration, float(wait)

    async def _pop(self) -> Answer:
        """Pop once. When the worker leaves meanwhile, a job that comes out is given back."""
        native = self._front.native
        headers = request_headers(native, self._exchange)
        popping = asyncio.get_running_loop().create_task(native.pop(self._path, self._body, headers))
        try:
            return await asyncio.shield(popping)
        except asyncio.CancelledError:
            self._front.background.spawn(self._undo(popping), "release")
            raise

    async def _undo(self, popping: asyncio.Task[Answer]) -> None:
        try:
            jobs = job_ids(await popping)
        except Unreachable:
            return
        for job in jobs:
            if await give_back(self._front.native, job):
                self._front.metrics.job_released()


def _is_empty(answer: Answer) -> bool:
    """Whether the pop went well and there was no job: what is worth waiting on."""
    if answer.status != 200:
        return False
    body = answer.json()
    return body is not None and body.get("id", "") is None
