"""Messages to workers, which their pops carry until they expire (wire reference 2.4 and 2.6)."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import RowMapping, text

from app.adapters.database import Transaction
from app.domain.errors import BadRequest, MessageNotFound, NotModerator, NotOwner
from app.domain.worker_profile import message_object
from app.services.accounts import Caller, alias_of, authenticate
from app.services.runtime import Runtime
from app.services.workers import unknown_worker

LONGEST_MESSAGE = 10_240
LONGEST_ORIGIN = 255
DEFAULT_HOURS = 12
MOST_HOURS = 24 * 30

SHOWN = 200
"""Messages of one answer, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to one worker, or to all when none is named. `hours` is how long pops carry it."""

    message: str
    worker_id: UUID | None = None
    origin: str | None = None
    hours: int = DEFAULT_HOURS

    def __post_init__(self) -> None:
        """Check the sizes. Raises BadRequest."""
        if not 1 <= len(self.message) <= LONGEST_MESSAGE:
            raise BadRequest(f"message: must have 1 to {LONGEST_MESSAGE} characters.", param="message")
        if self.origin is not None and not 1 <= len(self.origin) <= LONGEST_ORIGIN:
            raise BadRequest(f"origin: must have 1 to {LONGEST_ORIGIN} characters.", param="origin")
        if not 1 <= self.hours <= MOST_HOURS:
            raise BadRequest(f"expiry: must be 1 to {MOST_HOURS} hours.", param="expiry")


class WorkerMessages:
    """The use cases of the messages' routes."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database

    def send(self, api_key: str, new: NewMessage) -> dict[str, Any]:
        """Store a message and return it. Its owner may write to a worker, a moderator to any and to all.

        Raises InvalidApiKey, WorkerNotFound, NotOwner, or NotModerator.
        """
        with self._database.transaction() as transaction:
            caller = authenticate(transaction, api_key)
            self._require_sender(transaction, caller, new.worker_id)
            row = (
                transaction.execute(
                    _STORE,
                    {
                        "id": uuid4(),
                        "worker_id": new.worker_id,
                        "author_id": caller.user_id,
                        "message": new.message,
                        "origin": new.origin or alias_of(caller.username, caller.user_id),
                        "hours": new.hours,
                    },
                )
                .mappings()
                .one()
            )
        return _shown(row)

    def read_all(self, api_key: str, worker_id: UUID | None = None) -> list[dict[str, Any]]:
        """Return the messages in force that the caller may see, newest first; of one worker if one is named.

        A moderator sees all, an owner those to its workers and those to all workers. Raises InvalidApiKey.
        """
        with self._database.statements() as transaction:
            caller = authenticate(transaction, api_key)
            rows = transaction.execute(
                _LIST,
                {
                    "all": caller.moderates,
                    "user_id": None if caller.key.is_shared else caller.user_id,
                    "worker_id": worker_id,
                    "limit": SHOWN,
                },
            )
            return [_shown(row) for row in rows.mappings()]

    def read(self, api_key: str, message_id: UUID) -> dict[str, Any]:
        """Return a message that the caller may see. Raises InvalidApiKey or MessageNotFound."""
        with self._database.statements() as transaction:
            caller = authenticate(transaction, api_key)
            row = _find(transaction, message_id)
            if row["worker_id"] is not None and not _may_see(caller, row):
                raise unknown_message()
            return _shown(row)

    def delete(self, api_key: str, message_id: UUID) -> None:
        """Take a message back: its author, the worker's owner, or a moderator.

        Raises InvalidApiKey, MessageNotFound, or NotOwner.
        """
        with self._database.transaction() as transaction:
            caller = authenticate(transaction, api_key)
            row = _find(transaction, message_id)
            if not _may_see(caller, row):
                raise NotOwner("Only its author, the worker's owner or a moderator may take a message back.")
            transaction.execute(_DELETE, {"id": message_id})

    @staticmethod
    def _require_sender(transaction: Transaction, caller: Caller, worker_id: UUID | None) -> None:
        if worker_id is None:
            if not caller.moderates:
                raise NotModerator("worker_id: only a moderator may write to all workers. Name one of yours.")
            return
        owner_id = transaction.execute(_OWNER, {"id": worker_id}).scalar_one_or_none()
        if owner_id is None:
            raise unknown_worker()
        if not caller.moderates and (caller.key.is_shared or owner_id != caller.user_id):
            raise NotOwner("worker_id: this worker belongs to another account.", param="worker_id")


def forget_expired(runtime: Runtime) -> None:
    """Delete the messages that no pop carries any more."""
    with runtime.database.statements() as transaction:
        transaction.execute(text("DELETE FROM worker_messages WHERE expires_at < now()"))


def unknown_message() -> MessageNotFound:
    """Build the refusal of an id that no message has which the caller may see."""
    return MessageNotFound("No message has this id.")


def _find(transaction: Transaction, message_id: UUID) -> RowMapping:
    row = transaction.execute(_FIND, {"id": message_id}).mappings().one_or_none()
    if row is None:
        raise unknown_message()
    return row


def _may_see(caller: Caller, row: RowMapping) -> bool:
    return caller.moderates or (not caller.key.is_shared and caller.user_id in {row["author_id"], row["owner_id"]})


def _shown(row: RowMapping) -> dict[str, Any]:
    return message_object(row) | {"worker_id": None if row["worker_id"] is None else str(row["worker_id"])}


_STORE = text(
    """
    INSERT INTO worker_messages (id, worker_id, author_id, message, origin, expires_at)
    VALUES (:id, :worker_id, :author_id, :message, :origin, now() + make_interval(hours => :hours))
    RETURNING id, worker_id, message, origin, expires_at
    """
)

_OWNER = text("SELECT user_id FROM workers WHERE id = :id AND deleted_at IS NULL")

_FIND = text(
    """
    SELECT m.id, m.worker_id, m.author_id, m.message, m.origin, m.expires_at, w.user_id AS owner_id
    FROM worker_messages m LEFT JOIN workers w ON w.id = m.worker_id
    WHERE m.id = :id AND m.expires_at > now()
    """
)

_LIST = text(
    """
    SELECT m.id, m.worker_id, m.message, m.origin, m.expires_at
    FROM worker_messages m LEFT JOIN workers w ON w.id = m.worker_id
    WHERE m.expires_at > now()
      AND (CAST(:worker_id AS uuid) IS NULL OR m.worker_id = CAST(:worker_id AS uuid))
      AND (:all OR m.worker_id IS NULL OR w.user_id = CAST(:user_id AS bigint))
    ORDER BY m.created_at DESC
    LIMIT :limit
    """
)

_DELETE = text("DELETE FROM worker_messages WHERE id = :id")
