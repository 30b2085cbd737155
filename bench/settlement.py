"""What money costs: settlements a second of one process, for one busy requester and for many.

    python -m bench.settlement [--settlements 5000] [--rounds 3]

Makes a throw-away PostgreSQL with a horde's tables, fills it with verified generations, and
lets one process settle and fold them: once with every request from one account, once with each
from an account of its own. Prints settlements a second of both, their ratio (one busy account
must cost at most 1.2 times as much as many: there is no hot row), and the CPU seconds that one
completion spends on money in the task process and in PostgreSQL.
"""

import argparse
import logging
import time
from dataclasses import dataclass
from statistics import median

import psutil
import structlog
from celery import Celery
from sqlalchemy import text

from app.services.invariants import check
from app.services.kudos import fold_balances
from app.services.runtime import Runtime, build_runtime
from app.services.settle import settle_batch
from bench.databases import create_database
from bench.report import Figure, tell
from config.settings import Settings
from tests.support.services import LocalServices

DURABLE: dict[str, str] = {}
"""PostgreSQL as it comes: every commit reaches the disk."""

BAR = 1.2

FILL = """
    WITH class AS (
        INSERT INTO requirement_classes (digest, requirements)
        VALUES (gen_random_uuid()::text, '{}') RETURNING id
    ), requester AS (
        INSERT INTO users (username, kind) SELECT 'requester', 'user' FROM generate_series(1, :accounts) RETURNING id
    ), numbered AS (
        SELECT id, row_number() OVER () AS number FROM requester
    ), owner AS (
        INSERT INTO users (username, kind) VALUES ('owner', 'user') RETURNING id
    ), worker AS (
        INSERT INTO workers (id, user_id, name, declaration, last_seen_at)
        SELECT gen_random_uuid(), id, 'bench-' || id, '{}', now() FROM owner RETURNING id
    ), made AS (
        INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, finished, sort_key, expires_at,
            ended_at)
        SELECT gen_random_uuid(), numbered.id, true, 'done', class.id, '{}', 512, 1024, 100, 150, 'strict', 20000, 1, 0,
            now(), now()
        FROM generate_series(1, :count) n
        JOIN numbered ON numbered.number = n % :accounts + 1
        CROSS JOIN class
        RETURNING id
    )
    INSERT INTO generations (id, request_id, worker_id, state, model, deadline_at, ended_at, tokens, charge, reward,
        next_dispatch_at)
    SELECT gen_random_uuid(), made.id, worker.id, 'verified', 'm', now(), now(), 100, 3000, 1000, now()
    FROM made, worker
"""


@dataclass(frozen=True)
class Cost:
    """What settling and folding took: on the clock, and of the CPU here and in PostgreSQL."""

    seconds: float
    process: float
    postgres: float


def settle(runtime: Runtime, *, accounts: int, count: int) -> Cost:
    """Settle and fold this many generations of this many requesters."""
    with runtime.database.transaction() as transaction:
        transaction.execute(text(FILL), {"accounts": accounts, "count": count})
        transaction.execute(text("ANALYZE"))
    process, postgres, started = time.process_time(), postgres_cpu(), time.perf_counter()
    if settle_batch(runtime) != count:
        raise RuntimeError("not every generation was settled")
    fold_balances(runtime)
    return Cost(time.perf_counter() - started, time.process_time() - process, postgres_cpu() - postgres)


def postgres_cpu() -> float:
    """CPU seconds of this machine's PostgreSQL processes that are alive, our own connection's among them."""
    spent = 0.0
    for process in psutil.process_iter(["name", "cpu_times"]):
        if process.info["name"] == "postgres" and process.info["cpu_times"] is not None:
            spent += process.info["cpu_times"].user + process.info["cpu_times"].system
    return spent


def report(label: str, costs: list[Cost], count: int) -> float:
    """Print the median of several rounds and return its seconds."""
    seconds = median(cost.seconds for cost in costs)
    process = median(cost.process for cost in costs) / count * 1e6
    postgres = median(cost.postgres for cost in costs) / count * 1e6
    print(
        f"{label:<24} {count / seconds:8.0f} settlements/s   "
        f"CPU a completion: {process:6.1f} µs task process, {postgres:6.1f} µs PostgreSQL"
    )
    return seconds


def main() -> None:
    """Run the bench; exit code 1 when the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settlements", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    count = options.settlements
    with LocalServices(DURABLE) as services:
        url = create_database(services)
        settings = Settings(_env_file=None, database_url=url, redis_url=services.redis_url)
        runtime = build_runtime(settings, Celery("bench"), pool_size=2, application="bench")
        try:
            settle(runtime, accounts=1, count=count)  # a first round, which also warms the server up
            busy, many = [], []
            for _ in range(options.rounds):
                busy.append(settle(runtime, accounts=1, count=count))
                many.append(settle(runtime, accounts=count, count=count))
            with runtime.database.transaction() as transaction:
                wrong = [rule for rule in check(transaction) if "reply" not in rule.rule]
        finally:
            runtime.database.close()
            runtime.bus.close()
            runtime.leases.close()
    ratio = report("one busy requester", busy, count) / report(f"{count} requesters", many, count)
    tell(Figure("busy_account", ratio))
    print(f"ratio {ratio:.2f}, at most {BAR}")
    if wrong:
        print(*wrong, sep="\n")
    raise SystemExit(bool(wrong) or ratio > BAR)


if __name__ == "__main__":
    main()
