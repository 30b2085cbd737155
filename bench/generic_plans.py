"""What one plan for each statement costs or spares the native API's routes (ADR 0055).

    python -m bench.generic_plans [--calls 200] [--rows 50000]

Fills a database with accounts, workers, ended requests and a queue, and calls the routes that
clients poll, in one process, over connections that plan each statement once and over ones that let
PostgreSQL decide. Prints p50 of both and their ratio, and every statement that took more than
twice as long with one plan.
"""

import argparse
import logging
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog
from celery import Celery
from flask.testing import FlaskClient
from sqlalchemy import Executable, text

from app.factory import create_app
from app.services.accounts import create_key
from app.services.runtime import Runtime, build_runtime
from bench.pop_depth import CASES, Bench
from tests.support.services import LocalServices
from tests.support.statements import around_statements

ACCOUNTS = 20_000
WORKERS = 100
QUEUED = 5_000
SLOWER = 2.0
WARM = 12
"""Calls before the measured ones: after five the driver prepares, after five more PostgreSQL decides about planning."""

_FILL = (
    """
    INSERT INTO users (id, username, kind) SELECT 1000 + i, 'user ' || i, 'user' FROM generate_series(1, :accounts) i
    """,
    """
    INSERT INTO balances (user_id, amount) SELECT 1000 + i, i FROM generate_series(1, :accounts) i
    """,
    """
    INSERT INTO workers (id, user_id, name, declaration, last_seen_at)
    SELECT gen_random_uuid(), 1000 + i, 'worker ' || i, CAST(:declaration AS jsonb), now() + interval '1 hour'
    FROM generate_series(1, :workers) i
    """,
    """
    WITH made AS (
        INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length, max_context_length,
            context_tokens, job_ttl_seconds, conformance, quote, finished, sort_key, expires_at, created_at, ended_at)
        SELECT gen_random_uuid(), 1000 + i % :accounts + 1, one.is_chat, 'done', one.class_id, one.requirements,
            80, 2048, 100, 150, 'best_effort', 1000, 1, i, now() + interval '1 day', now() - i * interval '1 s',
            now() - i * interval '1 s'
        FROM generate_series(1, :rows) i, (SELECT * FROM horde_requests LIMIT 1) one
        RETURNING id, created_at
    )
    INSERT INTO generations (id, request_id, worker_id, state, model, popped_at, deadline_at, ended_at, tokens, charge,
        reward)
    SELECT gen_random_uuid(), made.id, box.id, 'settled', 'bench', made.created_at, made.created_at, made.created_at,
        20, 1000, 1000
    FROM made, LATERAL (SELECT id FROM workers WHERE made.id IS NOT NULL ORDER BY id LIMIT 1) box
    """,
)


@dataclass
class Times:
    """Milliseconds of each route, and of each statement under it."""

    routes: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statements: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


class Routes:
    """The native API over one runtime, and the calls that are compared."""

    def __init__(self, runtime: Runtime, key: str) -> None:
        self.runtime = runtime
        self.client: FlaskClient = create_app(runtime).test_client()
        self.key = key
        self.times = Times()

    def calls(self, request_id: UUID) -> Iterator[tuple[str, Callable[[], Any]]]:
        """The routes by name."""
        get = ("/workers?type=text", "/workers/name/worker 7", "/users", "/users/1007", "/status/performance",
               "/stats/text/totals", "/stats/text/models", "/generate/chat/models", "/find_user",
               f"/generate/chat/status/{request_id}")  # fmt: skip
        for path in get:
            yield f"GET {path.split(str(request_id), maxsplit=1)[0]}", lambda path=path: self._call("GET", path)  # type: ignore[misc]
        yield "POST submit and DELETE", self._submit
        yield "POST pop without a job", lambda: self._call("POST", "/generate/text/pop", _IDLE)

    def timed(self, name: str, call: Callable[[], Any]) -> None:
        """Call a route once and note its time."""
        with around_statements(self._statement):
            started = time.perf_counter()
            call()
            self.times.routes[name].append(1000 * (time.perf_counter() - started))

    def _call(self, method: str, path: str, body: object = None) -> Any:
        answer = self.client.open(f"/api/v2{path}", method=method, json=body, headers={"apikey": self.key})
        assert answer.status_code in {200, 202}, (path, answer.text)
        return answer.get_json()

    def _submit(self) -> None:
        asked = self._call("POST", "/generate/chat/async", _ASKED)
        self._call("DELETE", f"/generate/chat/status/{asked['id']}")

    @contextmanager
    def _statement(self, statement: Executable) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.times.statements[str(statement)].append(1000 * (time.perf_counter() - started))


_ASKED = {
    "model": "bench",
    "messages": [{"role": "user", "content": "Say hello."}],
    "max_tokens": 16,
    "horde": {"conformance": "best_effort"},
}
_IDLE = {"name": "idle", "models": ["nobody-asks"], "max_length": 512, "max_context_length": 2048}


def measure(once: Routes, free: Routes, calls: int, request_id: UUID) -> None:
    """Call every route in turn by both, once it is warm, so that a busy machine slows both alike."""
    for (name, planned), (_, decided) in zip(once.calls(request_id), free.calls(request_id), strict=True):
        for _ in range(WARM):
            planned()
            decided()
        for _ in range(calls):
            once.timed(name, planned)
            free.timed(name, decided)


def compare(once: Times, free: Times) -> None:
    """Print both, route by route, and the statements that one plan slows."""
    for name, took in once.routes.items():
        planned, decided = statistics.median(took), statistics.median(free.routes[name])
        print(f"{name:40}  one plan {planned:7.2f}  decided {decided:7.2f} ms  ratio {planned / decided:.2f}")
    print(f"statements that take more than {SLOWER:.0f} times as long with one plan:")
    for statement, took in once.statements.items():
        planned, decided = statistics.median(took), statistics.median(free.statements.get(statement, took))
        if planned > SLOWER * decided:
            print(f"  {planned:.2f} instead of {decided:.2f} ms: {' '.join(statement.split())[:300]}")


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rows", type=int, default=50_000)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with LocalServices({}) as services:
        bench = Bench(services)
        request_id, key = prepare(bench, options.rows)
        settings = bench.runtime.settings.model_copy(update={"rate_limits": False})
        both = []
        for planned_once in (True, False):
            celery = Celery("bench", broker=settings.redis_url, set_as_current=False)
            runtime = build_runtime(settings, celery, pool_size=1, application="bench", planned_once=planned_once)
            both.append(Routes(runtime, key))
        once, free = both
        measure(once, free, options.calls, request_id)
        compare(once.times, free.times)
        for routes in both:
            routes.runtime.database.close()
        bench.runtime.database.close()


def prepare(bench: Bench, rows: int) -> tuple[UUID, str]:
    """Fill the database; one of its waiting requests, and its requester's key."""
    case = CASES[0]
    bench.pop(bench.key, case.declaration, None)
    bench.fill(case, QUEUED)
    values = {"accounts": ACCOUNTS, "workers": WORKERS, "rows": rows}
    with bench.runtime.database.transaction() as transaction:
        transaction.execute(text("SET LOCAL statement_timeout = 0"))
        transaction.execute(text("SET LOCAL session_replication_role = replica"))
        declaration = transaction.execute(text("SELECT declaration::text FROM workers LIMIT 1")).scalar_one()
        for statement in _FILL:
            named = values | {"declaration": declaration}
            transaction.execute(
                text(statement), {name: each for name, each in named.items() if f":{name}" in statement}
            )
        waiting = transaction.execute(text("SELECT request_id FROM queue_entries ORDER BY sort_key DESC LIMIT 1"))
        request_id: UUID = waiting.scalar_one()
        transaction.execute(text("UPDATE users SET concurrency = 1000000 WHERE id = :id"), {"id": bench.requester})
        _, key = create_key(transaction, bench.requester, "bench")
    with bench.runtime.database.statements() as transaction:
        transaction.execute(text("VACUUM (ANALYZE)"))
    return request_id, key


if __name__ == "__main__":
    main()
