"""The claim: the best request that a worker may have, out of a queue of any length, in one statement (A5, D11).

Three steps inside it. Each class gives its first few entries (the cost follows the number
of classes, not the length of the queue), the best of them stand in line, and the first
that nobody else is taking is locked, with further slots of its request up to `amount`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import Row, TextClause, text

from app.adapters.database import Transaction
from app.domain.capabilities import Declaration, Limit, Requirements, covers_whole_class, worker_limit
from app.domain.selection import Candidate
from app.domain.states import RequestState
from app.domain.text_request import ONE_BY_ONE
from app.services.transitions import LIVES_ON, guard
from app.services.walks import Walks

OFFLOADED = """(SELECT m.folder FROM request_media m
    WHERE m.request_id = {request} AND m.offloaded_at IS NOT NULL) AS offloaded"""
"""Where a request's messages were stored as an object; NULL when they were not."""

HEADS = 4
"""Entries that each class gives at first."""

MORE_HEADS = 64
"""Entries that each class gives when others were taking all of the first ones."""

WALK = 1_000
"""Entries that one window into a class shows, where its sizes straddle the worker's limit and have to be compared."""

FURTHER_WALKS = 3
"""Windows further on that a pop without a job looks through, before the next pop goes on from there."""

WALK_PREFERRED = 200
"""Entries of a preferred account that are looked at; behind them its requests wait their turn as all others do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One class that a worker may be given, and the other workers that could serve it."""

    class_id: int
    requirements: Requirements
    rivals: tuple[Candidate, ...] = ()

    def shown(self, declaration: Declaration) -> dict[str, Any]:
        """Return the wish for the statement."""
        rivals = [{"id": rival.id, **self._limits(rival.declaration)} for rival in self.rivals]
        return {"class_id": self.class_id, "rivals": rivals, **self._limits(declaration)}

    def straddles(self, declaration: Declaration) -> bool:
        """Whether some requests of the class are too large for the worker."""
        return not covers_whole_class(declaration, self.requirements)

    def _limits(self, declaration: Declaration) -> dict[str, Any]:
        """Return a worker's limits where they have to be compared, entry by entry."""
        if not self.straddles(declaration):
            return {"exact": False}
        limits = {limit.value: worker_limit(declaration, self.requirements, limit) for limit in Limit}
        return {"exact": True, **limits}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A worker that asks for a job.

    `preferred` are the accounts whose requests go first, its owner's foremost; in maintenance
    (`owner_only`) it gets the owner's alone. `life` is how long a text request lives on from its
    last progress, in seconds (native-api N4).
    """

    worker_id: UUID
    declaration: Declaration
    preferred: tuple[int, ...]
    owner_only: bool
    pop_key: str | None
    ttl_factor: float
    ttl_floor: int
    life: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Entries of one class that a claim looks at: from a sort key on, or from its head.

    `goes_on`: how far it came is remembered when nothing in it fits.
    """

    wish: Wish
    since: float | None = None
    goes_on: bool = False


def claim(transaction: Transaction, asking: Asking, wishes: Iterable[Wish], walks: Walks) -> list[Row[Any]]:
    """Lease the best request of these classes to the worker: its generations, or none."""
    wanted = list(wishes)
    windows = first_windows(asking, wanted, walks)
    for _ in range(1 + FURTHER_WALKS):
        rows = _claimed(transaction, asking, windows)
        walks.note(asking.worker_id, {int(class_id): key for class_id, key in rows[0].walked.items()})
        if rows[0].generation_id is not None:
            return rows
        windows = [] if asking.owner_only else further_windows(asking, wanted, walks)
        if not windows:
            break
    return []


def _claimed(transaction: Transaction, asking: Asking, windows: Iterable[Window]) -> list[Row[Any]]:
    values = values_of(asking, windows)
    rows = transaction.execute(CLAIM, values).all()
    if rows[0].generation_id is None and rows[0].seen:
        rows = transaction.execute(WIDER_CLAIM, values).all()
    return list(rows)


def first_windows(asking: Asking, wishes: Iterable[Wish], walks: Walks) -> list[Window]:
    """Return the head of every class, and of those that straddle a limit the place where the last look stopped."""
    windows = []
    for wish in wishes:
        further = _further(asking, wish, walks)
        windows.append(Window(wish=wish, goes_on=further is None and wish.straddles(asking.declaration)))
        if further is not None:
            windows.append(further)
    return windows


def further_windows(asking: Asking, wishes: Iterable[Wish], walks: Walks) -> list[Window]:
    """Return where to go on in the classes that nobody has seen the end of."""
    further = [_further(asking, wish, walks) for wish in wishes]
    return [window for window in further if window is not None]


def _further(asking: Asking, wish: Wish, walks: Walks) -> Window | None:
    since = walks.reached(asking.worker_id, wish.class_id)
    if since is None or not wish.straddles(asking.declaration):
        return None
    return Window(wish=wish, since=since, goes_on=True)


def values_of(asking: Asking, windows: Iterable[Window]) -> Mapping[str, Any]:
    """Return the parameters of the claim."""
    declaration = asking.declaration
    return {
        "windows": Jsonb(
            [
                window.wish.shown(declaration)
                | {
                    "number": number,
                    "since": "-Infinity" if window.since is None else window.since,
                    "goes_on": window.goes_on,
                }
                for number, window in enumerate(windows)
            ]
        ),
        "preferred": list(asking.preferred[:1] if asking.owner_only else asking.preferred),
        "anybody": not asking.owner_only,
        "amount": declaration.amount,
        "worker_id": asking.worker_id,
        "pop_key": asking.pop_key,
        "model_id": declaration.model_id or "",
        "models": list(declaration.models),
        "screened": bool(declaration.blacklist),
        "ttl_factor": asking.ttl_factor,
        "ttl_floor": asking.ttl_floor,
        "life": asking.life,
        "sources": guard(RequestState.PROCESSING),
    }


_LIMITS = """exact boolean, max_length float8, max_context_length float8, max_images float8, max_tools float8,
    tools_max_temperature float8"""


def _within(limits: str) -> str:
    """Build the condition that an entry's sizes are within a worker's limits."""
    return f"""
    (NOT {limits}.exact OR (
        q.max_length <= COALESCE({limits}.max_length, 'Infinity')
        AND q.max_context_length <= COALESCE({limits}.max_context_length, 'Infinity')
        AND q.images <= COALESCE({limits}.max_images, 'Infinity')
        AND q.tools <= COALESCE({limits}.max_tools, 'Infinity')
        AND COALESCE(q.tools_temperature, 0) <= COALESCE({limits}.tools_max_temperature, 'Infinity')))"""


# A request that this worker failed is left to the others while one of them has not failed it too.
_FITS = f"""
    {_within("c")}
    AND NOT (q.retried
        AND EXISTS (SELECT 1 FROM generations f
                    WHERE f.request_id = q.request_id AND f.worker_id = :worker_id AND f.fault <> 'released')
        AND EXISTS (SELECT 1 FROM jsonb_to_recordset(c.rivals) AS rival(id uuid, {_LIMITS})
                    WHERE {_within("rival")}
                      AND NOT EXISTS (SELECT 1 FROM generations f
                                      WHERE f.request_id = q.request_id AND f.worker_id = rival.id
                                        AND f.fault <> 'released')))
"""  # noqa: S608 - the parts are constants of this module


def _looked(heads: int) -> str:
    """Build the look at each class: who contends, and how far into a class nothing fitted."""
    return f"""
        WITH wanted AS MATERIALIZED (
            SELECT * FROM jsonb_to_recordset(:windows) AS c(
                number int, since float8, goes_on boolean, class_id int, rivals jsonb, {_LIMITS})
        ), found AS MATERIALIZED (
            SELECT own.request_id, own.slot, 0 AS turn, own.sort_key, NULL::int AS number
            FROM unnest(CAST(:preferred AS bigint[])) AS owner(id)
            CROSS JOIN LATERAL (
                SELECT q.request_id, q.slot, q.sort_key
                FROM (SELECT * FROM queue_entries e
                      WHERE e.user_id = owner.id ORDER BY e.sort_key LIMIT {WALK_PREFERRED}) q
                JOIN wanted c ON c.class_id = q.class_id AND c.since = '-Infinity'
                WHERE {_FITS}
                ORDER BY q.sort_key LIMIT {heads}
            ) own
            UNION ALL
            SELECT head.request_id, head.slot, 1, head.sort_key, c.number
            FROM wanted c
            CROSS JOIN LATERAL (
                SELECT q.request_id, q.slot, q.sort_key
                FROM (SELECT * FROM queue_entries e
                      WHERE e.class_id = c.class_id AND e.sort_key >= c.since
                      ORDER BY e.sort_key LIMIT {WALK}) q
                WHERE {_FITS}
                ORDER BY q.sort_key LIMIT {heads}
            ) head
            WHERE :anybody
        ), contenders AS MATERIALIZED (
            SELECT request_id, slot, turn, sort_key FROM found ORDER BY turn, sort_key LIMIT {4 * heads}
        ), walked AS (
            SELECT c.class_id, (
                SELECT e.sort_key FROM queue_entries e
                WHERE e.class_id = c.class_id AND e.sort_key >= c.since
                ORDER BY e.sort_key OFFSET {WALK - 1} LIMIT 1
            ) AS reached
            FROM wanted c
            WHERE c.goes_on AND :anybody AND NOT EXISTS (SELECT 1 FROM found WHERE found.number = c.number)"""  # noqa: S608 - the numbers and the fragments are constants of this module


_TAKEN = f"""    ), head AS MATERIALIZED (
        SELECT q.request_id, q.slot
        FROM contenders c JOIN queue_entries q ON q.request_id = c.request_id AND q.slot = c.slot
        WHERE q.request_id = ANY(ARRAY(SELECT request_id FROM contenders))
        ORDER BY c.turn, c.sort_key
        LIMIT 1
        FOR UPDATE OF q SKIP LOCKED
    ), more AS MATERIALIZED (
        SELECT q.request_id, q.slot
        FROM queue_entries q
        WHERE q.request_id = (SELECT request_id FROM head) AND q.slot <> (SELECT slot FROM head)
          AND NOT EXISTS (SELECT 1 FROM request_bodies b
                          WHERE b.request_id = q.request_id AND jsonb_exists(b.contract, '{ONE_BY_ONE}'))
        ORDER BY q.slot
        LIMIT :amount - 1
        FOR UPDATE OF q SKIP LOCKED
    ), taken AS (
        DELETE FROM queue_entries q
        WHERE q.request_id = (SELECT request_id FROM head)
          AND q.slot = ANY(ARRAY(SELECT slot FROM head UNION ALL SELECT slot FROM more))
        RETURNING q.request_id, q.slot
    ), moved AS (
        UPDATE horde_requests r
        SET waiting = r.waiting - t.slots,
            state = CASE WHEN r.waiting > t.slots THEN 'queued' ELSE 'processing' END,
            expires_at = {LIVES_ON}
        FROM (SELECT request_id, count(*) AS slots, min(slot) AS first_slot FROM taken GROUP BY request_id) t
        WHERE r.id = t.request_id AND r.state = ANY(CAST(:sources AS text[]))
        RETURNING r.id, r.is_chat, r.streams, r.requirements, r.max_length, r.max_context_length, r.created_at,
            t.first_slot,
            greatest(:ttl_floor, ceil(r.job_ttl_seconds * CAST(:ttl_factor AS float8)))::int AS ttl
    ), born AS (
        INSERT INTO generations (id, request_id, slot, worker_id, state, streamed, model, pop_key, deadline_at)
        SELECT gen_random_uuid(), moved.id, taken.slot, :worker_id, 'leased', moved.streams,
            CASE WHEN moved.is_chat THEN :model_id ELSE COALESCE((
                SELECT m FROM unnest(CAST(:models AS text[])) m
                WHERE moved.requirements -> 'models' = '[]' OR jsonb_exists(moved.requirements -> 'models', m)
                ORDER BY random() LIMIT 1), :model_id) END,
            CASE WHEN taken.slot = moved.first_slot THEN CAST(:pop_key AS text) END,
            now() + make_interval(secs => moved.ttl)
        FROM moved JOIN taken ON taken.request_id = moved.id
        RETURNING id, slot, model
    )"""  # noqa: S608 - the fragment is a constant
"""The first contender that nobody else is taking, with its further slots, moved out of the queue to the worker.

Entries are found by values and not by joins, which read the whole queue when its plan was made for an empty one
(ADR 0090).
"""

_SHOWN = f"""    SELECT seen.entries AS seen,
           (SELECT COALESCE(jsonb_object_agg(class_id, reached), '{{}}') FROM walked) AS walked, job.*
    FROM (SELECT count(*) AS entries FROM contenders) seen
    LEFT JOIN (
        SELECT born.id AS generation_id, born.model, moved.id AS request_id, moved.is_chat, moved.max_length,
               moved.streams AS streamed, moved.max_context_length, moved.created_at, moved.ttl, b.contract,
               CASE WHEN NOT moved.is_chat OR :screened THEN b.prompt END AS prompt,
               {OFFLOADED.format(request="moved.id")}
        FROM born, moved JOIN request_bodies b ON b.request_id = moved.id
        ORDER BY born.slot
    ) job ON true"""  # noqa: S608 - the fragment is a constant
"""One row a job, or one without a job, with what the look came to."""


def _statement(heads: int) -> TextClause:
    """Build the claim with its limits as literals: by a parameter, the planner expects a tenth of the queue."""
    return text(_looked(heads) + _TAKEN + _SHOWN)


CLAIM = _statement(HEADS)
WIDER_CLAIM = _statement(MORE_HEADS)
