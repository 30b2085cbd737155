"""Deletes what ended requests left in the object store, and what belongs to no request at all (images I7)."""

import time
from itertools import groupby

import structlog
from prometheus_client import Counter
from sqlalchemy import text

from app.adapters.object_store import ObjectMissing, StoreAway
from app.services.runtime import Runtime
from app.services.stage_images import PREFIX, all_keys
from config.fault_points import FaultPoint, reach

BATCH = 100
MOST_BATCHES = 20
ORPHANS_AT_ONCE = 20_000
"""Objects that one search for orphans looks at."""

OBJECTS_DELETED = Counter("horde_objects_deleted", "Folders deleted from the object store.", ["why"])

log = structlog.get_logger(__name__)


def delete_objects(runtime: Runtime) -> int:
    """Delete the objects of ended requests that no worker holds any more; return of how many.

    A store that is away is asked again at the next turn: the row goes only with the objects.
    """
    if not runtime.store.is_configured:
        return 0
    deleted = 0
    for _ in range(MOST_BATCHES):
        batch = _delete_batch(runtime)
        deleted += batch
        if batch < BATCH:
            break
    return deleted


def _delete_batch(runtime: Runtime) -> int:
    with runtime.database.statements() as transaction:
        rows = transaction.execute(_ENDED, {"limit": BATCH}).all()
    if not rows:
        return 0
    try:
        runtime.store.delete([key for row in rows for key in all_keys(row.folder, row.sources)])
    except (StoreAway, ObjectMissing):
        return 0
    reach(FaultPoint.OBJECTS_DELETED)
    with runtime.database.statements() as transaction:
        transaction.execute(_FORGET, {"ids": [row.request_id for row in rows]})
    OBJECTS_DELETED.labels("ended").inc(len(rows))
    return len(rows)


def delete_orphans(runtime: Runtime) -> int:
    """Delete old objects that no row names: of submits and tasks that died between the store and the row."""
    if not runtime.store.is_configured:
        return 0
    oldest_kept = time.time() - runtime.settings.media_orphan_seconds
    try:
        found = [key for key, at in runtime.store.keys(PREFIX, most=ORPHANS_AT_ONCE) if at < oldest_kept]
        folders = {folder: list(keys) for folder, keys in groupby(sorted(found), lambda key: key.rpartition("/")[0])}
        with runtime.database.statements() as transaction:
            known = set(transaction.execute(_KNOWN, {"folders": list(folders)}).scalars())
        orphans = {folder: keys for folder, keys in folders.items() if folder not in known}
        runtime.store.delete([key for keys in orphans.values() for key in keys])
    except (StoreAway, ObjectMissing):
        return 0
    if orphans:
        OBJECTS_DELETED.labels("orphan").inc(len(orphans))
        log.info("objects.orphaned", folders=len(orphans))
    return len(orphans)


# A worker whose requester left may still fetch: its job goes on to its end (details D7).
_ENDED = text(
    """
    SELECT m.request_id, m.folder, m.sources
    FROM request_media m JOIN horde_requests r ON r.id = m.request_id
    WHERE r.ended_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.request_id = r.id AND g.state = 'leased')
    LIMIT :limit
    """
)

_FORGET = text("DELETE FROM request_media WHERE request_id = ANY(CAST(:ids AS uuid[]))")

_KNOWN = text("SELECT folder FROM request_media WHERE folder = ANY(CAST(:folders AS text[]))")
