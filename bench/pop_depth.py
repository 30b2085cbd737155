"""What a pop costs by the length of the queue: with a job, without one, and with ineligible requests ahead.

    python -m bench.pop_depth [--depths 10 1000 100000 1000000] [--pops 300] [--explain]

Fills the queue with generated requests (no process runs but PostgreSQL and Valkey), pops
through the service that the route calls, and prints p10, p50 and p95, the ratios to the
shortest queue, SQL statements a pop, and a bare SKIP LOCKED claim on a table of the same length as
the baseline of the run. `--explain` prints the plan of the claim at the last depth.
"""

import argparse
import logging
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from celery import Celery
from prometheus_client import REGISTRY
from psycopg.types.json import Jsonb
from sqlalchemy import text

from app.domain.capabilities import Declaration, parse_declaration
from app.domain.contract import Face, parse_chat_request
from app.domain.requirements import Requirements, requirements_of
from app.domain.text_request import parse_text_request, stored_contract
from app.services import accounts, claim
from app.services.online import OnlineWorkers
from app.services.pop import Pop
from app.services.queue_info import QueueInfo
from app.services.release_job import ReleaseJob
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime, build_runtime
from app.services.walks import Walks
from bench.databases import create_database
from bench.report import Figure, tell
from config.settings import Settings
from tests.support.services import LocalServices

AHEAD = 50_000
CHAT_MODEL = "bench"
TEXT_MODELS = ("text-a", "text-b", "text-c")
FEATURE_SETS = ((), ("tools",), ("json_object",), ("reasoning",))

FILL = text(
    """
    WITH made AS (
        INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, waiting, sort_key, expires_at)
        SELECT gen_random_uuid(), :user_id, :is_chat, 'queued', :class_id, :requirements, :max_length,
            :max_context_length, 100, 150, 'best_effort', 1000, 1, :first + i, now() + interval '1 day'
        FROM generate_series(1, :count) i
        RETURNING id, user_id, class_id, sort_key, max_length, max_context_length
    ), bodies AS (
        INSERT INTO request_bodies (request_id, contract, prompt, submitted_prompt)
        SELECT id, :contract, 'Say hello.', 'Say hello.' FROM made
    )
    INSERT INTO queue_entries (request_id, user_id, class_id, sort_key, max_length, max_context_length, images, tools)
    SELECT id, user_id, class_id, sort_key, max_length, max_context_length, 0, 0 FROM made
    """
)


@dataclass(frozen=True, slots=True)
class Case:
    """One worker before one kind of queue."""

    label: str
    declaration: Declaration
    classes: int
    ahead: int = 0


class Bench:
    """A database, an owner of workers, and the pop."""

    def __init__(self, services: LocalServices) -> None:
        url = create_database(services)
        settings = Settings(_env_file=None, database_url=url, redis_url=services.redis_url)
        self.runtime: Runtime = build_runtime(
            settings,
            Celery("bench", broker=settings.redis_url, set_as_current=False),
            pool_size=2,
            application="bench",
            planned_once=True,
        )
        with self.runtime.database.transaction() as transaction:
            self.requester = accounts.create_user(transaction, "requester")
            owner = accounts.create_user(transaction, "owner")
            _, self.key = accounts.create_key(transaction, owner, "bench")
        self.classes = RequirementClasses()
        online = OnlineWorkers(settings.worker_online_seconds)
        self.pop = Pop(self.runtime, online, self.classes, QueueInfo(self.runtime, online, self.classes))
        self.release = ReleaseJob(self.runtime)

    def fill(self, case: Case, depth: int) -> None:
        """Give the queue `depth` requests that the worker may have, behind those that it may not.

        Every class has one at least, so that the shortest queue has as many classes as the longest.
        """
        depth = max(depth, case.classes)
        self._execute("TRUNCATE horde_requests, request_bodies, queue_entries, generations, operation_keys CASCADE")
        if case.ahead:
            self._fill(_elsewhere(case.declaration), case.ahead, first=0)
        each, rest = divmod(depth, case.classes)
        for number in range(case.classes):
            count = each + (number < rest)
            if count:
                self._fill(_wanted(case.declaration, number), count, first=AHEAD + number / case.classes)
        with self.runtime.database.statements() as transaction:
            for table in ("queue_entries", "horde_requests", "request_bodies", "generations"):
                transaction.execute(text(f"VACUUM (ANALYZE) {table}"))
            transaction.execute(text("CHECKPOINT"))

    def _fill(self, requirements: Requirements, count: int, first: float) -> None:
        contract = _CHAT.stored() if requirements.is_chat else stored_contract(_TEXT)
        with self.runtime.database.transaction() as transaction:
            transaction.execute(text("SET LOCAL session_replication_role = replica"))
            transaction.execute(text("SET LOCAL statement_timeout = 0"))
            class_id = self.classes.intern(transaction, requirements)
            transaction.execute(
                FILL,
                {
                    "user_id": self.requester,
                    "is_chat": requirements.is_chat,
                    "class_id": class_id,
                    "requirements": Jsonb(requirements.stored()),
                    "max_length": requirements.max_length,
                    "max_context_length": requirements.max_context_length,
                    "first": first,
                    "count": count,
                    "contract": Jsonb(contract),
                },
            )

    def bare_claim(self, depth: int, times: int) -> float:
        """p50 of a claim on a plain table with an index, in milliseconds."""
        self._execute("DROP TABLE IF EXISTS bare")
        self._execute("CREATE TABLE bare (id bigint PRIMARY KEY, sort_key float8)")
        self._execute("INSERT INTO bare SELECT i, i FROM generate_series(1, :depth) i", depth=depth + times)
        self._execute("CREATE INDEX ON bare (sort_key)")
        statement = text(
            "DELETE FROM bare WHERE id = (SELECT id FROM bare ORDER BY sort_key LIMIT 1 FOR UPDATE SKIP LOCKED)"
        )

        def once() -> None:
            with self.runtime.database.statements() as transaction:
                transaction.execute(statement)

        return _timed(once, times)[0]

    def explain(self, case: Case) -> str:
        """The plan of the claim, with what it really did, undone afterwards."""
        with self.runtime.database.engine.connect() as connection:
            worker = connection.execute(text("SELECT id FROM workers WHERE name = 'bench'")).scalar_one()
            asking = claim.Asking(
                worker_id=worker,
                declaration=case.declaration,
                preferred=(self.requester,),
                owner_only=False,
                pop_key=None,
                ttl_factor=1.0,
                ttl_floor=150,
                life=1200,
            )
            windows = claim.first_windows(asking, _wishes(self, case), Walks())
            statement = text(f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {claim.CLAIM.text}")
            plan = connection.execute(statement, claim.values_of(asking, windows)).scalars().all()
            connection.rollback()
        return "\n".join(map(str, plan))

    def _execute(self, statement: str, **values: object) -> None:
        with self.runtime.database.transaction() as transaction:
            transaction.execute(text("SET LOCAL statement_timeout = 0"))
            transaction.execute(text(statement), values)


_CHAT = parse_chat_request(
    {
        "model": CHAT_MODEL,
        "messages": [{"role": "user", "content": "Say hello."}],
        "horde": {"conformance": "best_effort"},
    },
    Face.NATIVE,
)
_TEXT = parse_text_request({"prompt": "Say hello.", "models": list(TEXT_MODELS)})


def _declared(**more: object) -> Declaration:
    body = {"name": "bench", "max_length": 1 << 20, "max_context_length": 1 << 20, "models": ["unused"], **more}
    return parse_declaration(body)[0]


def _wanted(declaration: Declaration, number: int) -> Requirements:
    """Requirements of one of up to 64 classes that this worker covers, each with sizes of its own."""
    features, size = FEATURE_SETS[number % 4], 16 << (number // 4)
    if declaration.chat_jobs:
        return replace(requirements_of(_CHAT, max_length=size, max_context_length=2 * size), features=features)
    models = (TEXT_MODELS[number % 3],)
    return replace(
        _TEXT.requirements(),
        models=models,
        max_length=16 << (number // 3 % 12),
        max_context_length=2048 << (number // 36),
    )


def _elsewhere(declaration: Declaration) -> Requirements:
    return replace(_wanted(declaration, 0), models=("somewhere-else",))


def _wishes(bench: Bench, case: Case) -> list[claim.Wish]:
    with bench.runtime.database.transaction() as transaction:
        wanted = [_wanted(case.declaration, number) for number in range(case.classes)]
        return [claim.Wish(class_id=bench.classes.intern(transaction, each), requirements=each) for each in wanted]


def statements_sent() -> float:
    """SQL statements that this process sent so far."""
    return float(REGISTRY.get_sample_value("horde_sql_statements_total") or 0)


def _timed(call: Callable[[], object], times: int) -> tuple[float, float]:
    for _ in range(20):
        call()
    took = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        took.append(1000 * (time.perf_counter() - started))
    took.sort()
    return statistics.median(took), took[int(0.95 * len(took))]


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds of pops with a job; p10 is what a machine that others use tells best."""

    p10: float
    p50: float
    p95: float
    statements: float


def _pops(bench: Bench, case: Case, times: int, depth: int) -> Figures:
    """Pop with a job so many times; jobs go back outside the measured time."""
    took, statements, leased = [], 0.0, list[UUID]()
    for number in range(times + 20):
        before, started = statements_sent(), time.perf_counter()
        job = bench.pop(bench.key, case.declaration, None)
        seconds = time.perf_counter() - started
        assert job.id is not None, "a queue with work gave no job"
        leased.append(job.id)
        if number >= 20:
            took.append(1000 * seconds)
            statements += statements_sent() - before
        if len(leased) >= min(depth // 2, 50):
            for generation_id in leased:
                bench.release(generation_id)
            leased.clear()
            with bench.runtime.database.statements() as transaction:
                transaction.execute(text("VACUUM queue_entries"))
    took.sort()
    return Figures(took[times // 10], statistics.median(took), took[int(0.95 * times)], statements / times)


CASES = (
    Case("chat, 1 model, 1 class", _declared(chat_jobs=True, prompt_jobs=False, model_id=CHAT_MODEL), 1),
    Case(
        "chat, 1 model, 64 classes",
        _declared(
            chat_jobs=True,
            prompt_jobs=False,
            model_id=CHAT_MODEL,
            chat_features=["tools", "json_object", "reasoning"],
        ),
        64,
    ),
    Case("text, 3 models, 64 classes", _declared(models=list(TEXT_MODELS)), 64),
    Case(
        "chat, 1 model, 50 000 ineligible ahead",
        _declared(chat_jobs=True, prompt_jobs=False, model_id=CHAT_MODEL),
        1,
        AHEAD,
    ),
)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", type=int, nargs="+", default=[10, 1_000, 100_000, 1_000_000])
    parser.add_argument("--pops", type=int, default=300)
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--cases", type=int, nargs="+", default=list(range(len(CASES))), help="which, from 0 on")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with LocalServices({}) as services:
        bench = Bench(services)
        for case in (CASES[number] for number in options.cases):
            shallowest: Figures | None = None
            print(case.label)
            for depth in options.depths:
                bench.fill(case, depth)
                pops = _pops(bench, case, options.pops, depth)
                shallowest = shallowest or pops
                deeper = pops.p50 / shallowest.p50
                idle = replace(case.declaration, name="idle", model_id="nobody-asks", models=("nobody-asks",))
                empty = _timed(lambda idle=idle: bench.pop(bench.key, idle, None), options.pops)  # type: ignore[misc]
                bare = bench.bare_claim(depth, options.pops)
                tell(
                    Figure("pop_p50", pops.p50, pops.p50 / bare),
                    Figure("pop_growth", deeper),
                    Figure("pop_statements", pops.statements),
                )
                print(
                    f"  depth {depth:>9}  with a job p10 {pops.p10:5.2f}  p50 {pops.p50:6.2f}  p95 {pops.p95:6.2f} ms"
                    f"  ratio p10 {pops.p10 / shallowest.p10:4.2f}  p50 {deeper:4.2f}"
                    f"  statements {pops.statements:.2f}   empty p50 {empty[0]:5.2f} ms   bare claim {bare:5.2f} ms",
                    flush=True,
                )
            if options.explain:
                print(bench.explain(case))
        bench.runtime.database.close()


if __name__ == "__main__":
    main()
