"""A connection plans a statement once (ADR 0055), perhaps for an empty horde: that plan must do for a full one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from app.services.request_status import LARGEST_BATCH
from app.services.settle import settle_batch
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World

ENDED = 3000
"""Ended requests of the full horde: a plan that reads them all reads some hundred times what is needed."""

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
    made AS (
        INSERT INTO horde_requests (id, user_id, is_chat, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, finished, sort_key, expires_at,
            created_at, ended_at)
        SELECT gen_random_uuid(), one.user_id, true, 'done', one.class_id, one.requirements, 80, 2048, 100, 150,
            'best_effort', 1000, 1, i, now() + interval '1 day', now(), now()
        FROM generate_series(1, :ended) i, one
        RETURNING id
    ), worked AS (
        INSERT INTO generations (id, request_id, worker_id, state, model, popped_at, deadline_at, submitted_at,
            ended_at, tokens, charge, reward)
        SELECT gen_random_uuid(), made.id, work.worker_id, 'settled', 'm', now(), now(), now(), now(), 20, 1000, 1000
        FROM made, work
        RETURNING id
    ), told AS (
        INSERT INTO replies (generation_id, body) SELECT id, '{"content": "Hello."}' FROM worked
    )
    SELECT count(*) FROM worked
"""

_FORGET = (
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
        yield "submit a request", lambda: self.requests.append(world.ask().id)
        yield "status while waiting", lambda: world.status(self.requests[-1])
        yield "pop with a job", self._pop
        yield "submit a reply", lambda: world.deliver(self.jobs[-1])
        yield "verify", lambda: verify_generation(world.runtime, self.jobs[-1])
        yield "status when done", lambda: world.status(self.requests[-1])
        yield "statuses of a front", lambda: world.read.changed(dict.fromkeys(self.requests[-LARGEST_BATCH:]))
        yield "submit the same reply again", lambda: world.deliver(self.jobs[-1])
        yield "submit another request", lambda: self.requests.append(world.ask().id)
        yield "cancel", lambda: world.cancel(self.requests[-1], api_key=world.requester_key, trusted_front=False)

    def _pop(self) -> None:
        job = self.world.pop()
        assert job.id is not None
        self.jobs.append(job.id)


def rows_read(world: World) -> int:
    """Rows and index entries that PostgreSQL has read for this database so far."""
    world.execute("SELECT pg_stat_force_next_flush()")
    ((read,),) = world.execute(_ROWS_READ)
    return int(str(read))


def measured(world: World, day: Day) -> dict[str, int]:
    """Rows that each call reads."""
    read = {}
    for name, call in day.calls():
        before = rows_read(world)
        call()
        read[name] = rows_read(world) - before
    return read


@pytest.mark.timeout(120)
def test_no_call_reads_more_rows_when_an_empty_horde_has_become_a_full_one(world: World) -> None:
    day = Day(world)
    for _ in range(PLANS_AFTER):
        for _, call in day.calls():
            call()
    young = measured(world, day)
    settle_batch(world.runtime)
    world.execute(_ENDED, ended=ENDED)
    full = measured(world, day)
    for statement in _FORGET:
        world.execute(statement.format(made=_MADE))
    assert {name: (young[name], read) for name, read in full.items() if read > young[name] + MORE} == {}
