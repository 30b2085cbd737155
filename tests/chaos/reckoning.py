"""What must be true of a horde that is at rest again after a run of the chaos runner."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import psutil
from redis import Redis

from app.domain import redis_keys
from app.domain.pricing import KUDOS
from app.domain.request_status import CANCELLED_FAULT
from app.domain.task_names import Queue
from tests.chaos.clients import TORN, TROUBLE, Asked
from tests.chaos.workers import Delivered
from tests.support.horde import HordeProcesses

Made = tuple[str, str, float | None, int]
"""A request as the database has it: id, state, seconds that it ended after its life, charges."""

LATE_SECONDS = 60
DEADLINE = 408
"""What the front says at a request's deadline."""

SHOWN = 5

LASTING_KEYS = frozenset({redis_keys.HEARTBEATS, redis_keys.HEARTBEATS_WATCH, redis_keys.TIMEOUTS})
BROKER_KEYS = ("_kombu.", "unacked")
OVERTAKEN = frozenset({"superseded", "request_expired"})
"""Why a reply that was stored may come to nothing."""

QUEUES = frozenset(queue.value for queue in Queue)


def shortened(what: str, found: list[str]) -> list[str]:
    """One line for many findings of a kind."""
    return [f"{what} ({len(found)}): {'; '.join(found[:SHOWN])}"] if found else []


def client_faults(horde: HordeProcesses, run: str, asked: list[Asked]) -> list[str]:
    """What clients were told and the database denies, and answers that nobody should get."""
    rows = horde.query(
        "SELECT substring(b.prompt FROM 'chaos-[0-9a-f]+-[0-9]{6}[.]'), r.id::text, r.state,"
        " extract(epoch FROM r.ended_at - r.expires_at)::float8,"
        " (SELECT count(*) FROM ledger_entries e JOIN generations g ON e.business_key = 'generation:' || g.id"
        "  WHERE g.request_id = r.id AND e.kind = 'charge')"
        " FROM horde_requests r JOIN request_bodies b ON b.request_id = r.id WHERE strpos(b.prompt, :run) > 0",
        run=f"chaos-{run}-",
    )
    by_text: dict[str, list[Made]] = defaultdict(list)
    for text, request_id, state, late, charges in rows:
        by_text[str(text)].append((str(request_id), str(state), late, int(str(charges))))  # type: ignore[arg-type]
    found: dict[str, list[str]] = defaultdict(list)
    for one in asked:
        made = by_text.get(one.text, [])
        for problem in asked_wrong(one, made):
            found[problem].append(f"{one} {made}")
    for text, made in by_text.items():
        for request_id, state, late, _charges in made:
            if late is None:
                found["not ended"].append(f"{text} {request_id} {state}")
            elif late > LATE_SECONDS:
                found["ended too late"].append(f"{text} {request_id} {state} {late:.0f} s")
    return [line for what, each in found.items() for line in shortened(what, each)]


def asked_wrong(one: Asked, made: Sequence[Made]) -> list[str]:
    """What is wrong with one client's request."""
    problems = []
    charges = sum(charge for *_, charge in made)
    if one.hung:
        problems.append("a call hung")
    if one.content is not None and one.content != one.text:
        problems.append("the reply of another, or spoilt")
    if one.content is not None and (len(made), charges) != (1, 1):
        problems.append("answered, without one request and one charge")
    if one.request_id is not None and one.request_id not in {request_id for request_id, *_ in made}:
        problems.append("a request that was accepted is not there")
    # Only a text submit has no operation key, and its client does not repeat it.
    if len(made) > 1 or charges > 1:
        problems.append("made or charged more than once")
    if one.status not in TROUBLE | {200, 202, DEADLINE}:
        problems.append(f"answered with {one.status}")
    if one.code == TORN:
        problems.append("a stream that ended without its last event")
    if one.status == 200 and not one.left and one.content is None and not one.code:
        problems.append("an empty 200")
    return problems


def worker_faults(horde: HordeProcesses, delivered: list[Delivered]) -> list[str]:
    """Replies that the horde accepted and does not have, and rewards that were not paid.

    A reply that was stored for later (202) may still lose to another's, or to the end of its request.
    """
    rows = horde.query(
        "SELECT g.id::text, g.state, g.reward, g.fault, y.body::text FROM generations g"
        " LEFT JOIN replies y ON y.generation_id = g.id"
    )
    by_id = {str(row[0]): row[1:] for row in rows}
    lost = []
    for one in delivered:
        if one.status not in {200, 202}:
            continue
        state, reward, fault, body = by_id.get(one.generation_id, ("missing", None, None, None))
        # What comes after a stream was cancelled is ignored, and paid as the text that was posted (details D7).
        is_kept = state in {"verified", "settled"} and (one.reply in str(body) or fault == CANCELLED_FAULT)
        is_paid = one.status == 202 or int(str(reward or 0)) == round(one.reward * KUDOS)
        if not (is_kept and is_paid) and not (one.status == 202 and fault in OVERTAKEN):
            lost.append(f"{one} is {state}, reward {reward}, fault {fault}, {body}")
    return shortened("a reply lost after a 2xx", lost)


def money_faults(horde: HordeProcesses) -> list[str]:
    """Charges without anything that was delivered, and slots charged twice."""
    without = horde.query(
        "SELECT g.id::text FROM ledger_entries e JOIN generations g ON e.business_key = 'generation:' || g.id"
        " LEFT JOIN replies y ON y.generation_id = g.id"
        " WHERE e.kind = 'charge' AND e.amount <> 0 AND y.generation_id IS NULL"
    )
    twice = horde.query(
        "SELECT g.request_id::text || ' ' || g.slot FROM ledger_entries e"
        " JOIN generations g ON e.business_key = 'generation:' || g.id WHERE e.kind = 'charge'"
        " GROUP BY g.request_id, g.slot HAVING count(*) > 1"
    )
    return shortened("a charge without a reply", [str(row[0]) for row in without]) + shortened(
        "a slot charged twice", [str(row[0]) for row in twice]
    )


def leaks(horde: HordeProcesses, bucket: Path) -> list[str]:
    """What a horde at rest should have given back: leases, keys without an end, objects, transactions."""
    with Redis.from_url(horde.services.redis_url) as redis:
        keys = [key.decode() for key in redis.scan_iter(count=1000)]
        endless = [
            key
            for key in keys
            if redis.ttl(key) == -1 and key not in LASTING_KEYS | QUEUES and not key.startswith(BROKER_KEYS)
        ]
        watched = [str(member) for member in redis.zrange(redis_keys.HEARTBEATS, 0, -1)]
    folders = {str(folder) for (folder,) in horde.query("SELECT folder FROM request_media")}
    orphans = [
        str(path.relative_to(bucket))
        for path in bucket.rglob("*")
        if path.is_file() and not any(folder in str(path) for folder in folders)
    ]
    idle = horde.query(
        "SELECT pid || ' ' || application_name || ' ' || left(query, 60) FROM pg_stat_activity"
        " WHERE state LIKE 'idle in transaction%' AND state_change < now() - interval '5 seconds'"
    )
    return (
        shortened("Redis keys without an end", endless)
        + shortened("jobs still listened for", watched)
        + shortened("objects of no request", orphans)
        + shortened("transactions left open", [str(row[0]) for row in idle])
    )


def left_processes(folder: Path) -> list[str]:
    """Processes of a horde that has been ended and that still run."""
    found = []
    for process in psutil.process_iter(["pid", "name"]):
        try:
            environment = process.environ()
        except (psutil.Error, OSError):
            continue
        if environment.get("HORDE_HOME") == str(folder):
            found.append(f"{process.info['pid']} {process.info['name']}")
    return shortened("processes that outlived their horde", found)


def tally(asked: list[Asked]) -> str:
    """How the clients fared, for people."""
    counts = Counter(f"{one.kind} {one.status}{' ' + one.code if one.code else ''}" for one in asked)
    return ", ".join(f"{what}: {times}" for what, times in sorted(counts.items()))
