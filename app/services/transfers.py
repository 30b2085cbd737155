"""Gives kudos from one account to another, once, however often it is asked (wire reference 2.7, details D19)."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import structlog
from sqlalchemy import Row, text, update

from app.adapters.database import Transaction
from app.domain.admission_rules import REGISTERED_FLOOR
from app.domain.errors import (
    BadRequest,
    EducationCannotSendKudos,
    FaultWhenKudosReceiving,
    FaultWhenKudosSending,
    IdempotencyKeyConflict,
    InvalidApiKey,
    InvalidTargetUsername,
    KudosTransferFromAnon,
    KudosTransferNotEnough,
    KudosTransferToAnon,
    KudosTransferToSelf,
    SourceAccountFlagged,
    TargetAccountFlagged,
    TooFastKudosTransfers,
    TransferDeletedUser,
    TransferSharedKeyExpired,
)
from app.domain.pricing import kudos
from app.domain.system_accounts import ANONYMOUS_ID
from app.domain.transfer_rules import REVERSE_SECONDS, target_of, transfer_amount
from app.models import ApiKey
from app.models.account import AccountKind
from app.services.accounts import SPENT_WITH, CallersKey, authenticate
from app.services.kudos import balance, lock_account
from app.services.runtime import Runtime
from app.services.suspicions import IS_SUSPICIOUS
from config.fault_points import FaultPoint, reach

LONGEST_IDEMPOTENCY_KEY = 255

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gift:
    """What is to be given by whom to whom; `target` is an account's id or a shared key's."""

    source_id: int
    target: int | UUID
    amount: int
    idempotency_key: str | None = None
    key: CallersKey | None = None


class TransferKudos:
    """The use case of a transfer over HTTP."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __call__(self, api_key: str, username: object, amount: object, idempotency_key: str | None) -> float:
        """Give kudos and return how much was given.

        The same idempotency key and body again give nothing and answer the same. Raises
        InvalidApiKey, and a refusal of its own for every reason not to give (wire reference 1.7).
        """
        with self._runtime.database.transaction() as transaction:
            caller = authenticate(transaction, api_key)
            if caller.key.is_shared:
                raise InvalidApiKey("A shared key is for asking. Its owner's own key can give kudos.")
            gift = Gift(
                source_id=caller.user_id,
                target=target_of(username),
                amount=transfer_amount(amount),
                idempotency_key=idempotency_key,
                key=caller.key,
            )
            transfer_id = transfer(transaction, gift)
        log.info("kudos.transferred", transfer_id=str(transfer_id), source_id=gift.source_id)
        return kudos(gift.amount)


def transfer(transaction: Transaction, gift: Gift) -> UUID:
    """Move kudos inside this transaction and return the transfer's id, an earlier one's for a repeated key.

    Raises BadRequest for a key that cannot be one, and a refusal of its own for every
    reason not to give (wire reference 1.7).
    """
    _check_key(gift.idempotency_key)
    target = _find_target(transaction, gift)
    for user_id in sorted({gift.source_id, target.id}):
        # Both, always in the same order: a transfer back at the same moment waits its turn.
        lock_account(transaction, user_id)
    done = _done_before(transaction, gift)
    if done is not None:
        return done
    source = transaction.execute(_ACCOUNT, {"id": gift.source_id}).one_or_none()
    if source is None:
        raise TransferDeletedUser(f"No account has the id {gift.source_id}.")
    _check_accounts(source, target)
    if transaction.execute(
        _REVERSE, {"source": source.id, "target": target.id, "seconds": REVERSE_SECONDS}
    ).scalar_one():
        raise TooFastKudosTransfers(
            f"{target.username} gave kudos to this account just now. Wait {REVERSE_SECONDS} seconds.",
            retry_after_seconds=REVERSE_SECONDS,
        )
    _check_funds(transaction, gift)
    return _move(transaction, gift, target)


def _find_target(transaction: Transaction, gift: Gift) -> Row[Any]:
    if isinstance(gift.target, int):
        found = transaction.execute(_ACCOUNT, {"id": gift.target}).one_or_none()
    else:
        found = transaction.execute(_SHARED_KEY, {"shared_id": gift.target}).one_or_none()
        if found is not None and found.expires_at is not None and found.expires_at <= datetime.now(UTC):
            raise TransferSharedKeyExpired("This shared key has expired.", param="username")
    if found is None or found.kind == AccountKind.SYSTEM:
        raise InvalidTargetUsername("No account has this name and number.", param="username")
    return found


def _done_before(transaction: Transaction, gift: Gift) -> UUID | None:
    if gift.idempotency_key is None:
        return None
    row = transaction.execute(_DONE, {"source": gift.source_id, "idempotency_key": gift.idempotency_key}).one_or_none()
    if row is None:
        return None
    if (row.target, row.amount) != (str(gift.target), gift.amount):
        raise IdempotencyKeyConflict(
            "This Idempotency-Key was used for another transfer. A new transfer needs a new key."
        )
    return UUID(str(row.id))


def _check_accounts(source: Row[Any], target: Row[Any]) -> None:
    if source.id == ANONYMOUS_ID:
        raise KudosTransferFromAnon("The anonymous account cannot give kudos. Register to get an account of your own.")
    if target.id == ANONYMOUS_ID:
        raise KudosTransferToAnon("The anonymous account takes no kudos.", param="username")
    if source.id == target.id:
        raise KudosTransferToSelf("The kudos would stay where they are. Name another account.", param="username")
    if source.deleted or target.deleted:
        raise TransferDeletedUser("This account was deleted.", param="username" if target.deleted else "apikey")
    if source.flagged:
        raise SourceAccountFlagged("This account is flagged and cannot give kudos. Ask a moderator.")
    if target.flagged:
        raise TargetAccountFlagged("That account is flagged and takes no kudos.", param="username")
    if source.suspicious:
        raise FaultWhenKudosSending("This account is suspected of misuse and cannot give kudos. Ask a moderator.")
    if target.suspicious:
        raise FaultWhenKudosReceiving("That account is suspected of misuse and takes no kudos.", param="username")
    if source.education:
        raise EducationCannotSendKudos("An account with the education role cannot give kudos.")


def _check_funds(transaction: Transaction, gift: Gift) -> None:
    """Check what may be given: what is above the floor, which is not the account's own to give (details D19)."""
    free = balance(transaction, gift.source_id) - REGISTERED_FLOOR
    if gift.key is not None and gift.key.kudos_limit is not None:
        spent = transaction.execute(_SPENT, {"key_id": gift.key.id}).scalar_one()
        free = min(free, gift.key.kudos_limit - int(spent))
    if gift.amount > free:
        raise KudosTransferNotEnough(
            f"{kudos(max(0, free))} kudos can be given: what is above the floor of {kudos(REGISTERED_FLOOR)} kudos "
            "and within the key's limit.",
            param="amount",
            metadata={"available": kudos(max(0, free))},
        )


def _move(transaction: Transaction, gift: Gift, target: Row[Any]) -> UUID:
    transfer_id = uuid4()
    metered = gift.key.metered_id if gift.key is not None else None
    transaction.execute(
        _MOVE,
        {
            "id": transfer_id,
            "source": gift.source_id,
            "target": target.id,
            "named": str(gift.target),
            "amount": gift.amount,
            "idempotency_key": gift.idempotency_key,
            "key_id": metered,
        },
    )
    if isinstance(gift.target, UUID):
        # Kudos for a shared key belong to its owner, and the key may spend so much more.
        transaction.execute(
            update(ApiKey)
            .where(ApiKey.shared_id == gift.target, ApiKey.kudos_limit.is_not(None))
            .values(kudos_limit=ApiKey.kudos_limit + gift.amount)
        )
    transaction.after_commit(lambda: reach(FaultPoint.TRANSFER_STORED))
    return transfer_id


def _check_key(idempotency_key: str | None) -> None:
    if idempotency_key is None:
        return
    if not 1 <= len(idempotency_key) <= LONGEST_IDEMPOTENCY_KEY or not idempotency_key.isprintable():
        raise BadRequest("Idempotency-Key: must have 1 to 255 printable characters.", param="Idempotency-Key")


_FACTS = (
    f"u.id, u.username, u.kind, u.flagged, u.education, u.deleted, {IS_SUSPICIOUS.format(account='u.id')} AS suspicious"
)

_ACCOUNT = text(f"SELECT {_FACTS} FROM users u WHERE u.id = :id")  # noqa: S608 - joined from constants

_SHARED_KEY = text(
    f"""
    SELECT {_FACTS}, k.expires_at
    FROM api_keys k JOIN users u ON u.id = k.user_id
    WHERE k.shared_id = :shared_id AND k.revoked_at IS NULL
    """  # noqa: S608 - joined from constants
)

_DONE = text(
    """
    SELECT id, target, amount FROM kudos_transfers
    WHERE source_id = :source AND idempotency_key = :idempotency_key
    """
)

_REVERSE = text(
    """
    SELECT EXISTS (SELECT 1 FROM kudos_transfers WHERE source_id = :target AND target_id = :source
                   AND created_at > now() - make_interval(secs => :seconds))
    """
)

_SPENT = text(f"SELECT {SPENT_WITH.format(key=':key_id')}")

_MOVE = text(
    """
    WITH noted AS (
        INSERT INTO kudos_transfers (id, source_id, target_id, target, amount, idempotency_key)
        VALUES (:id, :source, :target, :named, :amount, CAST(:idempotency_key AS text))
        RETURNING id, source_id, target_id, amount
    )
    INSERT INTO ledger_entries (business_key, kind, user_id, amount, key_id)
    SELECT 'transfer:' || id, 'gift', source_id, -amount, CAST(:key_id AS bigint) FROM noted
    UNION ALL
    SELECT 'transfer:' || id, 'receipt', target_id, amount, NULL FROM noted
    """
)
