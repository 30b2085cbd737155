"""The workers as clients read them, and what their owners and moderators change (wire reference 2.6)."""

from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row, text
from sqlalchemy.exc import IntegrityError

from app.adapters.database import Transaction
from app.domain.declaration import Declaration
from app.domain.errors import (
    Locked,
    NotModerator,
    NotOwner,
    NoWorkerModSelected,
    WorkerNameAlreadyExists,
    WorkerNotFound,
)
from app.domain.name_rules import check_worker_texts, parse_words
from app.domain.worker_profile import View, WorkerEdit, WorkerFacts, message_object, worker_object
from app.services.accounts import Caller, alias_of, authenticate
from app.services.runtime import Runtime

log = structlog.get_logger(__name__)

DEFAULT_MAINTENANCE = "The owner of this worker put it into maintenance."


class Workers:
    """The use cases of the workers' routes."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database
        self._words = parse_words(runtime.settings.refused_name_words)
        self._online = runtime.settings.worker_online_seconds

    def list_online(self, api_key: str | None, name: str | None = None) -> list[dict[str, Any]]:
        """Return the workers that are online, by name; of one name in any case if one is given.

        Raises InvalidApiKey for a key that is no good.
        """
        with self._database.statements() as transaction:
            caller = _caller(transaction, api_key)
            rows = transaction.execute(_LIST, {"online": self._online, "name": name})
            return [self._shown(row, caller) for row in rows]

    def read(self, worker_id: UUID, api_key: str | None) -> dict[str, Any]:
        """Return a worker, online or not.

        Raises WorkerNotFound, and InvalidApiKey for a key that is no good.
        """
        return self._read(_BY_ID, {"online": self._online, "id": worker_id}, api_key)

    def read_by_name(self, name: str, api_key: str | None) -> dict[str, Any]:
        """Return the worker of exactly this name, online or not.

        Raises WorkerNotFound, and InvalidApiKey for a key that is no good.
        """
        return self._read(_BY_NAME, {"online": self._online, "name": name}, api_key)

    def _read(self, statement: Any, values: dict[str, object], api_key: str | None) -> dict[str, Any]:
        with self._database.statements() as transaction:
            caller = _caller(transaction, api_key)
            row = transaction.execute(statement, values).first()
            if row is None:
                raise unknown_worker()
            return self._shown(row, caller)

    def edit(self, api_key: str, worker_id: UUID, wanted: WorkerEdit) -> dict[str, Any]:
        """Change a worker and return what was changed, and nothing else.

        Raises InvalidApiKey, WorkerNotFound, NotOwner, NotModerator for `paused`,
        NoWorkerModSelected, WorkerNameAlreadyExists, or what `check_worker_texts` raises.
        """
        try:
            with self._database.transaction() as transaction:
                caller = authenticate(transaction, api_key)
                self._require_owner(transaction, caller, worker_id)
                if wanted.paused is not None and not caller.moderates:
                    raise NotModerator("paused: only a moderator may pause a worker.", param="paused")
                if wanted.changes_nothing:
                    raise NoWorkerModSelected("Name what to change: maintenance, info, name, or paused.")
                check_worker_texts(wanted.name, wanted.info, self._words)
                change_worker(transaction, worker_id, wanted)
        except IntegrityError:
            raise WorkerNameAlreadyExists("name: another worker has this name.", param="name") from None
        log.info("worker.edited", worker_id=str(worker_id), user_id=caller.user_id)
        given = {
            "maintenance": wanted.maintenance,
            "maintenance_msg": wanted.maintenance_msg if wanted.maintenance is not None else None,
            "paused": wanted.paused,
            "info": wanted.info,
            "name": wanted.name,
        }
        return {key: value for key, value in given.items() if value is not None}

    def delete(self, api_key: str, worker_id: UUID) -> dict[str, str]:
        """Take a worker off the horde; its name is free again, what it delivered stays paid.

        Raises InvalidApiKey, WorkerNotFound, NotOwner, or Locked while it has a job.
        """
        with self._database.transaction() as transaction:
            caller = authenticate(transaction, api_key)
            row = self._require_owner(transaction, caller, worker_id)
            if transaction.execute(_BUSY, {"id": worker_id}).scalar_one():
                raise Locked(
                    "This worker has a job under way. Stop it, and delete it once the job is over.",
                    retry_after_seconds=60,
                )
            transaction.execute(_DELETE, {"id": worker_id})
        log.info("worker.deleted", worker_id=str(worker_id), user_id=caller.user_id)
        return {"deleted_id": str(worker_id), "deleted_name": row.name}

    @staticmethod
    def _require_owner(transaction: Transaction, caller: Caller, worker_id: UUID) -> Row[Any]:
        row = transaction.execute(_OWNER, {"id": worker_id}).one_or_none()
        if row is None:
            raise unknown_worker()
        if not caller.moderates and (caller.key.is_shared or row.user_id != caller.user_id):
            raise NotOwner("Only its owner or a moderator may do this to a worker.")
        return row

    def _shown(self, row: Row[Any], caller: Caller | None) -> dict[str, Any]:
        owns = caller is not None and caller.user_id == row.user_id and not caller.key.is_shared
        view = View(owner=owns, moderator=caller is not None and caller.moderates)
        return worker_object(_facts(row), view)


def change_worker(transaction: Transaction, worker_id: UUID, wanted: WorkerEdit) -> None:
    """Change a worker that was found, whoever wants it."""
    transaction.execute(_EDIT, _changes(worker_id, wanted))


def unknown_worker() -> WorkerNotFound:
    """Build the refusal of an id or a name that no worker has."""
    return WorkerNotFound("No worker has this id or name.")


def _caller(transaction: Transaction, api_key: str | None) -> Caller | None:
    return None if api_key is None else authenticate(transaction, api_key)


def _changes(worker_id: UUID, wanted: WorkerEdit) -> dict[str, object]:
    message = wanted.maintenance_msg or DEFAULT_MAINTENANCE if wanted.maintenance else None
    return {
        "id": worker_id,
        "maintenance": wanted.maintenance,
        "message": message,
        "paused": wanted.paused,
        "info": wanted.info,
        "name": wanted.name,
    }


def _facts(row: Row[Any]) -> WorkerFacts:
    return WorkerFacts(
        id=str(row.id),
        name=row.name,
        owner=alias_of(row.username, row.user_id),
        declaration=Declaration.from_stored(row.declaration),
        online=row.online,
        maintenance=row.maintenance,
        paused=row.paused,
        trusted=row.trusted,
        flagged=row.flagged,
        info=row.info,
        tokens_per_second=row.tokens_per_second,
        fulfilled=row.fulfilled,
        uncompleted=row.uncompleted,
        generated=row.rewards,
        uptime_rewards=row.uptime_rewards,
        uptime_seconds=row.uptime_seconds,
        messages=[message_object(message) for message in row.messages or ()],
        owner_is_public=row.public_workers,
        suspicions=row.suspicions,
        address=row.address,
        contact=row.contact,
    )


_WORKERS = """
    SELECT w.id, w.name, w.user_id, w.declaration, w.maintenance, w.paused, w.info, w.uptime_seconds,
           w.uptime_rewards, w.last_seen_at > now() - make_interval(secs => :online) AS online,
           u.username, u.trusted, u.flagged, u.public_workers, u.contact, w.address,
           (SELECT count(*) FROM suspicions x WHERE x.worker_id = w.id) AS suspicions,
           COALESCE(t.fulfilled, 0) AS fulfilled, COALESCE(t.uncompleted, 0) AS uncompleted,
           COALESCE(t.rewards, 0) AS rewards,
           (SELECT avg(s.tokens_per_second) FROM worker_speeds s WHERE s.worker_id = w.id) AS tokens_per_second,
           (SELECT jsonb_agg(jsonb_build_object(
                       'id', m.id, 'message', m.message, 'origin', m.origin, 'expires_at', m.expires_at)
                    ORDER BY m.created_at)
            FROM worker_messages m WHERE m.worker_id = w.id AND m.expires_at > now()) AS messages
    FROM workers w
    JOIN users u ON u.id = w.user_id
    LEFT JOIN worker_totals t ON t.worker_id = w.id
    WHERE w.deleted_at IS NULL AND {which}
"""

_LIST = text(
    _WORKERS.format(
        which="""w.last_seen_at > now() - make_interval(secs => :online)
        AND (CAST(:name AS text) IS NULL OR lower(w.name) = lower(CAST(:name AS text)))
    ORDER BY w.name"""
    )
)

_BY_ID = text(_WORKERS.format(which="w.id = :id"))

_BY_NAME = text(_WORKERS.format(which="w.name = :name"))

_OWNER = text("SELECT user_id, name FROM workers WHERE id = :id AND deleted_at IS NULL FOR UPDATE")

# Who ends a maintenance starts the count of failures anew: the worker is not put back by the next one.
_EDIT = text(
    """
    UPDATE workers SET
        maintenance = COALESCE(CAST(:maintenance AS boolean), maintenance),
        maintenance_message = CASE WHEN CAST(:maintenance AS boolean) IS NULL THEN maintenance_message
                                   ELSE CAST(:message AS text) END,
        aborts = CASE WHEN CAST(:maintenance AS boolean) IS FALSE THEN 0 ELSE aborts END,
        aborts_since = CASE WHEN CAST(:maintenance AS boolean) IS FALSE THEN NULL ELSE aborts_since END,
        paused = COALESCE(CAST(:paused AS boolean), paused),
        info = CASE WHEN CAST(:info AS text) IS NULL THEN info ELSE NULLIF(CAST(:info AS text), '') END,
        name = COALESCE(CAST(:name AS text), name)
    WHERE id = :id
    """
)

_BUSY = text(
    """
    SELECT EXISTS (SELECT 1 FROM generations WHERE worker_id = :id AND state = 'leased')
        OR EXISTS (SELECT 1 FROM generations WHERE worker_id = :id AND state = 'submitted')
    """
)

_DELETE = text(
    """
    UPDATE workers SET deleted_at = now(), last_seen_at = to_timestamp(0), uptime_from = NULL, info = NULL
    WHERE id = :id
    """
)
