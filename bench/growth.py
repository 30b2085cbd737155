"""Whether a horde with a long past is as fast as an empty one.

    python -m bench.growth [--requests 1000000] [--rounds 3] [--calls 300]

Loads the text routes with one client, then gives the same horde a past: so many ended requests,
each with a settled generation and its four ledger entries, folded, their bodies erased as they are
after a while. Then the same load again. Prints each call's p50 before and after and their ratio;
the rounds' medians count. Every invariant holds at the end, past and all.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from app.domain.system_accounts import HORDE_ID
from bench.load import counted_loop
from bench.report import Figure, tell
from bench.roundtrip import DURABLE
from bench.text_cycle import WORKERS, TextLoad, empty, fill, start
from tests.support.services import LocalServices, wait_until

DEPTH = 100
BATCH = 50_000
FOLD_PATIENCE_SECONDS = 60.0

# A tenth of the reward is in escrow, as an owner's that is not trusted.
PAST = """
    WITH one AS (
        SELECT r.*, g.worker_id, g.model, w.user_id AS owner_id
        FROM generations g JOIN horde_requests r ON r.id = g.request_id JOIN workers w ON w.id = g.worker_id
        WHERE g.state = 'settled' LIMIT 1
    ), made AS (
        INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, finished, sort_key, created_at,
            expires_at, ended_at, bodies_erased_at)
        SELECT gen_random_uuid(), requesters.id, one.is_chat, 'done', one.class_id, one.requirements, one.max_length,
            one.max_context_length, one.context_tokens, one.job_ttl_seconds, one.conformance, one.quote, 1, i,
            past.at, past.at + interval '20 minutes', past.at + interval '10 seconds', past.at + interval '30 minutes'
        FROM generate_series(1, :count) i
        CROSS JOIN one
        CROSS JOIN LATERAL (SELECT now() - interval '1 day' - i * interval '1 second' AS at) past
        JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS number, count(*) OVER () AS all FROM users
              WHERE username LIKE 'requester%') requesters ON requesters.number = i % requesters.all
        RETURNING id, user_id, ended_at
    ), served AS (
        INSERT INTO generations (id, request_id, worker_id, state, model, popped_at, deadline_at, submitted_at,
            ended_at, tokens, charge, reward)
        SELECT gen_random_uuid(), made.id, one.worker_id, 'settled', one.model, made.ended_at - interval '5 seconds',
            made.ended_at, made.ended_at, made.ended_at, 80, 3000, 1000
        FROM made CROSS JOIN one
        RETURNING id, request_id
    )
    INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount, tokens, folded)
    SELECT 'generation:' || served.id, entry.kind, entry.user_id, entry.pocket, entry.amount, entry.tokens, true
    FROM served
    JOIN made ON made.id = served.request_id
    CROSS JOIN one
    CROSS JOIN LATERAL (VALUES
        ('charge', made.user_id, 'spendable', -3000, 80),
        ('reward', one.owner_id, 'spendable', 900, 80),
        ('reward_escrow', one.owner_id, 'escrow', 100, 0),
        ('fee', :horde, 'spendable', 2000, 0)
    ) AS entry (kind, user_id, pocket, amount, tokens)
"""

FOLDED = (
    """
    INSERT INTO balances (user_id, amount, escrow, held)
    SELECT user_id, COALESCE(sum(amount) FILTER (WHERE pocket = 'spendable'), 0),
        COALESCE(sum(amount) FILTER (WHERE pocket = 'escrow'), 0),
        COALESCE(sum(amount) FILTER (WHERE pocket = 'held'), 0)
    FROM ledger_entries WHERE folded GROUP BY user_id
    ON CONFLICT (user_id) DO UPDATE SET amount = excluded.amount, escrow = excluded.escrow, held = excluded.held
    """,
    """
    INSERT INTO kudos_totals (user_id, kind, amount, entries, tokens)
    SELECT user_id, kind, sum(amount), count(*), sum(tokens) FROM ledger_entries WHERE folded GROUP BY user_id, kind
    ON CONFLICT (user_id, kind) DO UPDATE
    SET amount = excluded.amount, entries = excluded.entries, tokens = excluded.tokens
    """,
)


def measure(load: TextLoad, rounds: int, calls: int) -> dict[str, float]:
    """p50 in milliseconds of each call of one client: the median of the rounds after a first, which warms up."""
    kinds = {
        "async": load.ask,
        "pop with a job": load.pop_job,
        "submit": load.submit,
        "status": load.status,
        "full cycle": load.cycle,
    }
    fill(load, DEPTH + calls * (rounds + 1))
    took: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds + 1):
        for name, call in kinds.items():
            took[name].append(asyncio.run(counted_loop(call, clients=1, calls=calls)).p50_ms)
    empty(load)
    took["empty pop"] = [asyncio.run(counted_loop(load.pop, clients=1, calls=calls)).p50_ms for _ in range(rounds + 1)]
    return {name: median(each[1:]) for name, each in took.items()}


def give_a_past(load: TextLoad, requests: int) -> None:
    """Make the ended requests and fold what they moved, while nobody else folds."""
    unfolded = "SELECT count(*) FROM ledger_entries WHERE NOT folded"
    wait_until(lambda: load.horde.query(unfolded) == [(0,)], FOLD_PATIENCE_SECONDS, "entries are not folded")
    for name in ("beat", "tasks"):
        load.horde.kill(name)
    for begun in range(0, requests, BATCH):
        load.horde.query(PAST, count=min(BATCH, requests - begun), horde=HORDE_ID)
    # PostgreSQL analyses tables that grow by itself, within a minute or so.
    for statement in (*FOLDED, "ANALYZE"):
        load.horde.query(statement)
    for name in ("beat", "tasks"):
        load.horde.start(name)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=300)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="horde-growth-bench-"))
    with LocalServices(DURABLE) as services:
        load = start(services, folder)
        try:
            asyncio.run(counted_loop(load.pop, clients=1, calls=WORKERS))
            before = measure(load, options.rounds, options.calls)
            load.horde.require_sound(120)
            began = time.perf_counter()
            give_a_past(load, options.requests)
            print(f"{options.requests} ended requests in {time.perf_counter() - began:.0f} s")
            after = measure(load, options.rounds, options.calls)
            for name, early in before.items():
                tell(Figure("growth", after[name] / early))
                print(
                    f"{name:<16} empty {early:6.2f} ms   with a past {after[name]:6.2f} ms   {after[name] / early:.2f}"
                )
            load.horde.require_sound(600)
            print("every invariant holds")
        finally:
            load.horde.close()


if __name__ == "__main__":
    main()
