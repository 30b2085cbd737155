"""What PostgreSQL knew when it made a plan is not what is: a plan must do for a full horde and for a busy one.

A connection plans a statement once (ADR 0055), perhaps for an empty horde. And ANALYZE may come in a moment
in which nothing waits and nobody works (ADR 0090).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from uuid import UUID

import pytest
from sqlalchemy import create_engine, text

from app.services.escrow import review_escrow
from app.services.history import note_minute
from app.services.kudos import fold_balances
from app.services.refresh_queue import measure_speeds
from app.services.request_status import LARGEST_BATCH
from app.services.settle import settle_batch
from app.services.statistics import count_generations
from app.services.suspicions import suspect_speeds
from app.services.sweep import erase_bodies, publish_ended, sweep
from app.services.uptime import reward_uptime
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World

ENDED = 3000
"""Ended requests of the full horde: a plan that reads them all reads some hundred times what is needed."""

OPEN = 400
"""Requests of another account that wait or are worked on."""

WORKED_OFF, PAIRS = 4000, 200
"""Pairs of entries that are booked for an account and folded, and how many at a time."""

PLANS_AFTER = 7
"""Calls after which every statement is planned: psycopg prepares one at the sixth."""

MORE = 60
"""Rows that a call may read more in a full horde, for what PostgreSQL has not cleaned up yet."""

_ROWS_READ = """
    SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)
         + (SELECT sum(idx_tup_read + idx_tup_fetch) FROM pg_stat_user_indexes)
"""

_ENDED = """
    WITH one AS (SELECT * FROM horde_requests WHERE is_chat AND state = 'done' LIMIT 1),
    work AS (SELECT g.* FROM generations g JOIN one ON g.request_id = one.id WHERE g.state = 'settled'),
    past AS (SELECT CASE WHEN :is_long_ago THEN now() - interval '1 day' ELSE now() END AS at),
    made AS (
        INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, finished, sort_key, expires_at,
            created_at, ended_at, bodies_erased_at)
        SELECT gen_random_uuid(), one.user_id, true, 'done', one.class_id, one.requirements, 80, 2048, 100, 150,
            'best_effort', 1000, 1, i, past.at + interval '20 minutes', past.at, past.at,
            CASE WHEN :is_long_ago THEN now() - interval '1 day' END
        FROM generate_series(1, :ended) i, one, past
        RETURNING id
    ), worked AS (
        INSERT INTO generations (id, request_id, worker_id, state, model, popped_at, deadline_at, submitted_at,
            ended_at, tokens, charge, reward)
        SELECT gen_random_uuid(), made.id, work.worker_id, 'settled', 'm', past.at, past.at, past.at, past.at, 20,
            1000, 1000
        FROM made, work, past
        RETURNING id
    ), told AS (
        INSERT INTO replies (generation_id, body) SELECT id, '{"content": "Hello."}' FROM worked
    ), paid AS (
        INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount, folded)
        SELECT 'ended:' || made.id, entry.kind, account.id, 'spendable', entry.amount, true
        FROM made, one, (VALUES ('more', 1), ('less', -1)) entry (kind, amount),
            LATERAL (VALUES (one.user_id), (0), (1)) account (id)
    )
    SELECT count(*) FROM worked
"""

_KEYS_OF_ENDED = """
    INSERT INTO operation_keys (user_id, scope, key, fingerprint, request_id, created_at)
    SELECT user_id, '', id::text, '', id, now() - interval '1 hour' FROM horde_requests WHERE id IN ({made})
"""

_QUEUE_OF_ANOTHER = """
    WITH one AS (SELECT * FROM horde_requests WHERE is_chat AND state = 'done' LIMIT 1),
    class AS (
        INSERT INTO requirement_classes (digest, requirements)
        SELECT 'another', c.requirements || '{"models": ["another"]}'
        FROM requirement_classes c JOIN one ON c.id = one.class_id
        RETURNING id, requirements
    ), made AS (
        INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, waiting, sort_key, expires_at)
        SELECT gen_random_uuid(), :another, true, CASE WHEN i % 2 = 0 THEN 'queued' ELSE 'processing' END, class.id,
            class.requirements, 80, 2048, 100, 150, 'best_effort', 1000, 1 - i % 2, -i, now() + interval '1 day'
        FROM generate_series(1, :open) i, class
        RETURNING id, class_id, sort_key, state
    ), waits AS (
        INSERT INTO queue_entries (request_id, user_id, class_id, sort_key, max_length, max_context_length, images,
            tools, tools_temperature)
        SELECT id, :another, class_id, sort_key, 80, 2048, 0, 0, 0 FROM made WHERE state = 'queued'
    ), bodies AS (
        INSERT INTO request_bodies (request_id, contract, prompt, submitted_prompt) SELECT id, '{}', '', '' FROM made
    ), jobs AS (
        INSERT INTO generations (id, request_id, worker_id, state, model, deadline_at)
        SELECT gen_random_uuid(), made.id, (SELECT id FROM workers LIMIT 1), 'leased', 'another',
            now() + interval '1 day'
        FROM made WHERE state = 'processing'
    )
    INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount)
    SELECT 'another:' || id, entry.kind, :another, 'spendable', entry.amount
    FROM made, (VALUES ('more', 1), ('less', -1)) entry (kind, amount)
    RETURNING id
"""

_ENTRIES = """
    INSERT INTO ledger_entries (business_key, kind, user_id, pocket, amount)
    SELECT 'another:' || gen_random_uuid(), entry.kind, :id, 'spendable', entry.amount
    FROM generate_series(1, :pairs), (VALUES ('more', 1), ('less', -1)) entry (kind, amount)
    RETURNING id
"""

_FORGET = (
    "DELETE FROM operation_keys WHERE request_id IN ({made})",
    "DELETE FROM ledger_entries WHERE business_key LIKE 'another:%' OR business_key LIKE 'ended:%'",
    "DELETE FROM kudos_totals WHERE kind IN ('more', 'less')",
    "DELETE FROM queue_entries WHERE request_id IN ({made})",
    "DELETE FROM request_bodies WHERE request_id IN ({made})",
    "DELETE FROM replies WHERE generation_id IN (SELECT g.id FROM generations g WHERE g.request_id IN ({made}))",
    "DELETE FROM generations WHERE request_id IN ({made})",
    "DELETE FROM horde_requests WHERE id IN ({made})",
)
_MADE = f"SELECT id FROM horde_requests WHERE sort_key <= {ENDED}"  # noqa: S608 - a constant
"""No clock ever gave a request so small a key."""


@dataclass
class Day:
    """What clients and workers call, one after the other, with what each call leaves for the next."""

    world: World
    requests: list[UUID] = field(default_factory=list)
    jobs: list[UUID] = field(default_factory=list)

    def calls(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Each call by its name."""
        world = self.world
        yield "empty pop", world.pop
        yield "submit a request", lambda: self.requests.append(world.ask(max_tokens=64).id)
        yield "status while waiting", lambda: world.status(self.requests[-1])
        yield "pop with a job", self._pop
        yield "submit a reply", lambda: world.deliver(self.jobs[-1])
        yield "verify", lambda: verify_generation(world.runtime, self.jobs[-1])
        yield "status when done", lambda: world.status(self.requests[-1])
        yield "statuses of a front", lambda: world.read.changed(dict.fromkeys(self.requests[-LARGEST_BATCH:]))
        yield "submit the same reply again", lambda: world.deliver(self.jobs[-1])
        yield "submit another request", lambda: self.requests.append(world.ask(max_tokens=64).id)
        yield "cancel", lambda: world.cancel(self.requests[-1], api_key=world.requester_key, trusted_front=False)

    def upkeep(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """What task processes do every few seconds, by its name."""
        runtime = self.world.runtime
        yield "settle", lambda: settle_batch(runtime)
        yield "sweep", lambda: sweep(runtime)
        yield "publish ended", lambda: publish_ended(runtime)
        yield "erase bodies", lambda: erase_bodies(runtime)
        yield "count generations", lambda: count_generations(runtime)
        yield "measure speeds", lambda: measure_speeds(runtime)
        yield "suspect speeds", lambda: suspect_speeds(runtime)
        yield "note a minute", lambda: note_minute(runtime)
        yield "reward uptime", lambda: reward_uptime(runtime)
        yield "review escrow", lambda: review_escrow(runtime)

    def _pop(self) -> None:
        job = self.world.pop()
        assert job.id is not None
        self.jobs.append(job.id)


def store(world: World, statement: str, **values: object) -> None:
    """Run a statement by a connection of its own, whose reads are counted before any call is measured."""
    engine = create_engine(world.runtime.settings.database_url)
    with engine.begin() as connection:
        connection.execute(text(statement), values)
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    engine.dispose()


def rows_read(world: World) -> int:
    """Rows and index entries that PostgreSQL has read for this database so far."""
    world.execute("SELECT pg_stat_force_next_flush()")
    ((read,),) = world.execute(_ROWS_READ)
    return int(str(read))


def measured(world: World, calls: Iterable[tuple[str, Callable[[], object]]]) -> dict[str, int]:
    """Rows that each call reads."""
    read = {}
    for name, call in calls:
        before = rows_read(world)
        call()
        read[name] = rows_read(world) - before
    return read


def called_often(world: World) -> Day:
    """A day on which every statement has been planned."""
    day = Day(world)
    for _ in range(PLANS_AFTER):
        for _, call in day.calls():
            call()
    return day


def forget(world: World) -> None:
    """Delete what no use case has made."""
    for statement in _FORGET:
        store(world, statement.format(made=_MADE))


def more(before: dict[str, int], after: dict[str, int]) -> dict[str, tuple[int, int]]:
    """The calls that read more rows than before, with both numbers."""
    return {name: (before[name], read) for name, read in after.items() if read > before[name] + MORE}


@pytest.mark.timeout(120)
def test_no_call_reads_more_rows_when_an_empty_horde_has_become_a_full_one(world: World) -> None:
    day = called_often(world)
    young = measured(world, day.calls())
    settle_batch(world.runtime)
    store(world, _ENDED, ended=ENDED, is_long_ago=False)
    full = measured(world, day.calls())
    forget(world)
    assert more(young, full) == {}


@pytest.mark.timeout(120)
def test_no_call_reads_what_others_have_open_when_statistics_were_taken_at_a_quiet_moment(world: World) -> None:
    another, _ = world.account("another")
    for _, call in Day(world).calls():
        call()
    settle_batch(world.runtime)
    fold_balances(world.runtime)
    store(world, _ENDED, ended=ENDED, is_long_ago=True)
    store(world, "ANALYZE")
    day = called_often(world)
    for _ in range(PLANS_AFTER):
        for _, call in day.upkeep():
            call()
    quiet = measured(world, chain(day.calls(), day.upkeep()))
    store(world, _QUEUE_OF_ANOTHER, another=another, open=OPEN)
    busy = measured(world, chain(day.calls(), day.upkeep()))
    forget(world)
    assert more(quiet, busy) == {}


@pytest.mark.timeout(120)
def test_no_call_reads_again_what_was_worked_off_since_the_last_vacuum(world: World) -> None:
    for _, call in Day(world).calls():
        call()
    settle_batch(world.runtime)
    store(world, _ENDED, ended=ENDED, is_long_ago=False)
    store(world, "ANALYZE")
    day = called_often(world)
    before = measured(world, day.calls())
    for _ in range(WORKED_OFF // PAIRS):
        store(world, _ENTRIES, pairs=PAIRS, id=world.requester_id)
        fold_balances(world.runtime)
    # Nothing is marked as dead before the end of its transaction is on disk, which a test's database does later.
    store(world, "CHECKPOINT")
    for _, call in day.calls():
        call()
    after = measured(world, day.calls())
    forget(world)
    assert more(before, after) == {}


@pytest.mark.timeout(120)
def test_neither_calls_nor_upkeep_read_what_ended_long_ago(world: World) -> None:
    day = called_often(world)
    folding = [
        ("book", lambda: store(world, _ENTRIES, pairs=10, id=world.requester_id)),
        ("fold balances", lambda: fold_balances(world.runtime)),
    ]
    for _ in range(PLANS_AFTER):
        for _, call in day.upkeep():
            call()
    fold_balances(world.runtime)
    before = measured(world, chain(day.calls(), day.upkeep(), folding))
    store(world, _ENDED, ended=ENDED, is_long_ago=True)
    store(world, _KEYS_OF_ENDED.format(made=_MADE))
    store(world, "ANALYZE")
    for _, call in day.upkeep():
        call()
    after = measured(world, chain(day.calls(), day.upkeep(), folding))
    forget(world)
    assert more(before, after) == {}
