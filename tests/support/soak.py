"""Workers of mixed declarations share many requests over HTTP while the horde's processes die under them."""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

import aiohttp

from tests.support.horde import KEYS, HordeProcesses

SUBMITTERS = 8
MODELS = ("a", "b", "c")
SIZES = (16, 24, 40)
LARGEST = (20, 30, 64)
"""What a worker takes at most; the second ends inside the bucket of a size."""

KILLED = ("web", "verdict", "tasks")
TOOL = {"type": "function", "function": {"name": "f"}}
PAUSE_SECONDS = 0.5
"""Between the pops of a worker that is not held, and before anybody calls again who was not answered."""


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


@dataclass(frozen=True)
class SoakSize:
    """How much is asked, of how many workers, and how often each of the processes is killed."""

    requests: int
    workers: int = 40
    rounds: int = 2


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
    size: SoakSize
    run: str = field(default_factory=lambda: uuid4().hex[:8])
    chance: random.Random = field(default_factory=lambda: random.Random(5))  # noqa: S311 - chances of a test
    asked: dict[str, Kind] = field(default_factory=dict)
    pops: list[Popped] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KILLED, 0))
    jobs: int = 0
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def kinds(self) -> Iterator[Kind]:
        """What is asked for, in an order of its own; each is covered by some worker."""
        for number in range(self.size.requests):
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
            jobs = job["ids"] or [job["id"]]
            self.pops.append(Popped(worker, sent, time.time(), jobs))
            await self.note(len(jobs))
            for one in jobs:
                await self.finish(one, job)

    async def note(self, jobs: int) -> None:
        """Count jobs that were handed out."""
        async with self.progress:
            self.jobs += jobs
            self.progress.notify_all()

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
        """Kill each process in turn by SIGKILL, spread over the jobs, each once the last one is back."""
        total = self.size.rounds * len(KILLED)
        for number in range(total):
            name, due = KILLED[number % len(KILLED)], self.size.requests * (number + 1) // (total + 1)
            async with self.progress:
                await self.progress.wait_for(lambda due=due: self.jobs >= due)  # type: ignore[misc]
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


async def soak(horde: HordeProcesses, size: SoakSize) -> Soak:
    """Run a soak until everything that was asked has ended."""
    timeout = aiohttp.ClientTimeout(total=15)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:
        under_way = Soak(horde, http, size)
        workers = [Worker(number, under_way.run) for number in range(size.workers)]
        # Everybody is known before anything is asked, so that nothing is refused for want of a worker.
        for worker in workers:
            status, answer = await under_way.call("text/pop", worker.declaration(uuid4().hex), KEYS.worker)
            assert (status, answer["id"]) == (200, None)
        kinds = under_way.kinds()
        submitting = asyncio.gather(*(under_way.ask(kinds) for _ in range(SUBMITTERS)))
        await asyncio.gather(under_way.watch(submitting), under_way.kill(), *map(under_way.work, workers))
        return under_way
