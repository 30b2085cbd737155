"""Forty workers share two thousand requests over HTTP while the horde's processes die under them."""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from typing import Any, NamedTuple
from uuid import uuid4

import aiohttp
import pytest

from app.domain.system_accounts import ANONYMOUS_ID
from tests.support.horde import KEYS, HordeProcesses

REQUESTS = 2_000
WORKERS = 40
SUBMITTERS = 8
MODELS = ("a", "b", "c")
SIZES = (16, 24, 40)
LARGEST = (20, 30, 64)
"""What a worker takes at most; the second ends inside the bucket of a size."""

KILLED = ("web", "verdict", "tasks")
TOOL = {"type": "function", "function": {"name": "f"}}
PAUSE_SECONDS = 0.5
"""Between the pops of a worker that is not held, and before anybody calls again who was not answered."""

COMMIT_SECONDS = 2.0
"""An entry is visible this long after the time that it bears, at the latest."""


class Kind(NamedTuple):
    """What a request asks of a worker."""

    is_chat: bool
    model: str
    size: int
    tools: bool


@dataclass(frozen=True)
class Worker:
    """One worker's declaration, and where and how it pops."""

    number: int
    run: str

    @property
    def name(self) -> str:
        return f"soak-{self.run}-{self.number}"

    @property
    def takes(self) -> tuple[bool, ...]:
        """Text, chat, or both."""
        return ((False,), (True,), (False, True))[self.number % 3]

    @property
    def model(self) -> str:
        return f"{MODELS[self.number // 3 % 3]}-{self.run}"

    @property
    def largest(self) -> int:
        return LARGEST[self.number // 9 % 3]

    @property
    def has_tools(self) -> bool:
        return self.number % 2 == 0

    @property
    def is_held(self) -> bool:
        """Whether it pops at the front, which holds, and not at the native API."""
        return self.number % 4 < 3

    def declaration(self, pop_key: str) -> dict[str, Any]:
        return {
            "name": self.name,
            "models": [self.model],
            "model_id": self.model,
            "prompt_jobs": False in self.takes,
            "chat_jobs": True in self.takes,
            "chat_features": ["tools"] if self.has_tools else [],
            "max_length": self.largest,
            "max_context_length": 4096,
            "amount": 2,
            "wait": 5,
            "pop_key": pop_key,
        }

    def covers(self, kind: Kind) -> bool:
        return (
            kind.is_chat in self.takes
            and kind.model == self.model
            and kind.size <= self.largest
            and (self.has_tools or not kind.tools)
        )


@dataclass
class Popped:
    """One answer with jobs, and the wall clock around its call."""

    worker: Worker
    sent: float
    received: float
    jobs: list[str]


@dataclass
class Soak:
    """The soak under way, and what its clients saw."""

    horde: HordeProcesses
    http: aiohttp.ClientSession
    run: str = field(default_factory=lambda: uuid4().hex[:8])
    chance: random.Random = field(default_factory=lambda: random.Random(5))  # noqa: S311 - chances of a test
    asked: dict[str, Kind] = field(default_factory=dict)
    pops: list[Popped] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KILLED, 0))
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def kinds(self) -> Iterator[Kind]:
        """What is asked for, in an order of its own; each is covered by some worker."""
        for number in range(REQUESTS):
            is_chat = number % 2 == 0
            model = f"{MODELS[number // 2 % 3]}-{self.run}"
            yield Kind(is_chat, model, SIZES[number // 6 % 3], is_chat and number % 5 == 0)

    async def call(self, path: str, body: dict[str, Any], key: str, face: str | None = None) -> tuple[int, Any]:
        """One call; status 0 when nobody answered."""
        url = f"{face or self.horde.native}/api/v2/generate/{path}"
        try:
            async with self.http.post(url, json=body, headers={"apikey": key}) as answer:
                return answer.status, await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return 0, None

    async def ask(self, kinds: Iterator[Kind]) -> None:
        """Submit what is left to submit; a submit that was not answered is sent again with its operation key."""
        for kind in kinds:
            if kind.is_chat:
                path, body = "chat/async", _chat(kind)
            else:
                path, body = "text/async", _text(kind)
            while True:
                status, answer = await self.call(path, body, KEYS.demo)
                if status in {200, 202}:
                    self.asked[answer["id"]] = kind
                    break
                assert status in {0, 502, 503}, answer
                await asyncio.sleep(PAUSE_SECONDS)

    async def work(self, worker: Worker) -> None:
        """Pop and serve until everything has ended. A pop that was not answered is sent again with its key."""
        pop_key = uuid4().hex
        face = self.horde.front if worker.is_held else self.horde.native
        while not self.over.is_set():
            sent = time.time()
            status, job = await self.call("text/pop", worker.declaration(pop_key), KEYS.worker, face)
            if status != 200 or not job["id"]:
                assert status in {0, 200, 502, 503}, job
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            pop_key = uuid4().hex
            self.pops.append(Popped(worker, sent, time.time(), job["ids"] or [job["id"]]))
            for one in job["ids"] or [job["id"]]:
                await self.finish(one, job)

    async def finish(self, one: str, job: dict[str, Any]) -> None:
        """Deliver, fault, vanish, or deliver late."""
        luck = self.chance.random()
        if luck < 0.04:
            return
        if luck < 0.06:
            await asyncio.sleep(job["ttl"] + 1)
        if job["is_chat"]:
            body: dict[str, Any] = {"message": {"content": "A reply."}, "finish_reason": "stop"}
        else:
            body = {"generation": "a time"}
        body |= {"id": one, "state": "faulted" if luck > 0.96 else "ok"}
        while not self.over.is_set():
            status, _ = await self.call("text/submit", body, KEYS.worker)
            if status not in {0, 502, 503}:
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def kill(self) -> None:
        """Kill one process after the other, each by SIGKILL at a time of chance once the last one is back."""
        for name in cycle(KILLED):
            await asyncio.sleep(self.chance.uniform(0.5, 4.0))
            if self.over.is_set():
                return
            await asyncio.to_thread(self.horde.restart, name)
            self.kills[name] += 1
            while not await self.is_back(name):  # noqa: ASYNC110 - a process that starts rings nobody
                await asyncio.sleep(PAUSE_SECONDS)

    async def is_back(self, name: str) -> bool:
        """Whether a process answers."""
        try:
            async with self.http.get(f"http://127.0.0.1:{self.ports[name]}/healthz") as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    @property
    def ports(self) -> dict[str, int]:
        ports = self.horde.ports
        return {"web": ports.native, "verdict": ports.verdict, "tasks": ports.tasks}

    async def watch(self, submitting: "asyncio.Future[Any]") -> None:
        """End the soak once nothing is open."""
        await submitting
        while self.open_requests():  # noqa: ASYNC110 - the database rings nobody
            await asyncio.sleep(PAUSE_SECONDS)
        self.over.set()

    def open_requests(self) -> int:
        rows = self.horde.query(
            "SELECT count(*) FROM horde_requests WHERE ended_at IS NULL AND requirements -> 'models' ->> 0 LIKE :run",
            run=f"%-{self.run}",
        )
        return int(str(rows[0][0]))


def _chat(kind: Kind) -> dict[str, Any]:
    body = {
        "model": kind.model,
        "messages": [{"role": "user", "content": "Say something."}],
        "max_tokens": kind.size,
        "horde": {"conformance": "best_effort"},
        "operation_key": uuid4().hex,
    }
    return body | {"tools": [TOOL]} if kind.tools else body


def _text(kind: Kind) -> dict[str, Any]:
    return {"prompt": "Once upon", "models": [kind.model], "params": {"max_length": kind.size, "n": 1}}


@dataclass(frozen=True)
class Lease:
    """One generation, as the database tells it; times are seconds of the epoch."""

    id: str
    request: str
    slot: int
    worker: str
    popped: float
    free: float
    accepted: bool


@dataclass(frozen=True)
class Asked:
    """One request, as the database tells it."""

    state: str
    n: int
    sort_key: float
    created: float
    ended: float


@dataclass(frozen=True)
class History:
    """Everything that happened to the requests of one soak."""

    requests: dict[str, Asked]
    leases: dict[tuple[str, int], list[Lease]]

    @classmethod
    def read(cls, horde: HordeProcesses, run: str) -> "History":
        requests = horde.query(
            "SELECT id::text, state, n, sort_key, extract(epoch FROM created_at)::float8,"
            " extract(epoch FROM COALESCE(ended_at, 'infinity'))::float8 FROM horde_requests"
            " WHERE requirements -> 'models' ->> 0 LIKE :run",
            run=f"%-{run}",
        )
        # A late reply moves the end of its job: until its deadline at the most the job was its worker's alone.
        leases = horde.query(
            "SELECT g.id::text, g.request_id::text, g.slot, w.name, extract(epoch FROM g.popped_at)::float8,"
            " extract(epoch FROM least(COALESCE(g.ended_at, 'infinity'), g.deadline_at))::float8,"
            " g.state IN ('verified', 'settled')"
            " FROM generations g JOIN workers w ON w.id = g.worker_id WHERE w.name LIKE :run ORDER BY g.popped_at",
            run=f"soak-{run}-%",
        )
        by_slot = defaultdict(list)
        for row in leases:
            lease = Lease(*row)  # type: ignore[arg-type]
            by_slot[lease.request, lease.slot].append(lease)
        return cls({str(row[0]): Asked(*row[1:]) for row in requests}, by_slot)  # type: ignore[arg-type]

    def waits(self, request: str) -> list[tuple[float, float]]:
        """When the slots of a request certainly stood in the queue."""
        asked = self.requests[request]
        found: list[tuple[float, float]] = []
        for slot in range(asked.n):
            leases = self.leases.get((request, slot), [])
            begins = [asked.created, *(lease.free for lease in leases)]
            ends = [*(lease.popped for lease in leases), asked.ended]
            found += zip(begins, ends, strict=True)
        # A slot whose last job delivered never came back.
        return [(begin + COMMIT_SECONDS, end) for begin, end in found if begin + COMMIT_SECONDS < end]


def overlaps(history: History) -> list[str]:
    """Jobs that were handed out while the same slot was another worker's."""
    return [
        f"{second.id} while {first.id}"
        for leases in history.leases.values()
        for first, second in pairwise(leases)
        if second.popped < first.free
    ]


def overtaken(history: History, soak: Soak) -> list[str]:
    """Pops that got a request although a better one, covered by the worker, stood in the queue all the while."""
    by_id = {lease.id: lease for leases in history.leases.values() for lease in leases}
    had = defaultdict(set)
    for lease in by_id.values():
        had[lease.worker].add(lease.request)
    waits = {request: [wait for wait in history.waits(request) if not _delivered(history, request, wait)]
             for request in soak.asked}  # fmt: skip
    in_order = sorted(soak.asked, key=lambda request: history.requests[request].sort_key)
    found = []
    for pop in soak.pops:
        got = by_id[pop.jobs[0]]
        limit = history.requests[got.request].sort_key
        for request in in_order:
            if history.requests[request].sort_key >= limit:
                break
            if request in had[pop.worker.name] or not pop.worker.covers(soak.asked[request]):
                continue
            # Of a pop that was sent again, the first call may have claimed the job.
            if any(begin < min(pop.sent, got.popped) and end > pop.received for begin, end in waits[request]):
                found.append(f"{pop.worker.name} got {got.request}, not {request}")
    return found


def _delivered(history: History, request: str, wait: tuple[float, float]) -> bool:
    """Whether a slot was delivered by the job before this time, so that nothing of it waited."""
    begin = wait[0] - COMMIT_SECONDS
    return any(
        lease.accepted and lease.free == begin
        for slot in range(history.requests[request].n)
        for lease in history.leases.get((request, slot), [])
    )


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_forty_workers_share_two_thousand_requests_while_processes_die(horde: HordeProcesses) -> None:
    horde.query("UPDATE users SET concurrency = 1000000 WHERE id <> :anonymous", anonymous=ANONYMOUS_ID)
    soak = asyncio.run(_soak(horde))
    horde.require_sound(60)
    history = History.read(horde, soak.run)
    assert min(soak.kills.values()) >= 2, soak.kills
    # None lost: what was asked has ended by a reply or by its third fault. A text submit whose answer was
    # lost has no operation key to find the first by, so there may be more than the client knows.
    assert history.requests.keys() >= soak.asked.keys()
    assert len(soak.asked) == REQUESTS
    assert {asked.state for asked in history.requests.values()} <= {"done", "faulted"}
    assert sum(asked.state == "done" for asked in history.requests.values()) > 0.95 * REQUESTS
    for request, asked in history.requests.items():
        accepted = sum(lease.accepted for slot in range(asked.n) for lease in history.leases[request, slot])
        assert accepted == asked.n or asked.state == "faulted"
    # None twice at once, none by a worker that does not cover it, in order.
    assert overlaps(history) == []
    workers = {pop.worker.name: pop.worker for pop in soak.pops}
    for leases in history.leases.values():
        for lease in leases:
            if lease.request in soak.asked and lease.worker in workers:
                assert workers[lease.worker].covers(soak.asked[lease.request])
    assert overtaken(history, soak) == []


async def _soak(horde: HordeProcesses) -> Soak:
    timeout = aiohttp.ClientTimeout(total=15)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:
        soak = Soak(horde, http)
        workers = [Worker(number, soak.run) for number in range(WORKERS)]
        # Everybody is known before anything is asked, so that nothing is refused for want of a worker.
        for worker in workers:
            status, answer = await soak.call("text/pop", worker.declaration(uuid4().hex), KEYS.worker)
            assert (status, answer["id"]) == (200, None)
        kinds = soak.kinds()
        submitting = asyncio.gather(*(soak.ask(kinds) for _ in range(SUBMITTERS)))
        await asyncio.gather(soak.watch(submitting), soak.kill(), *map(soak.work, workers))
        return soak
