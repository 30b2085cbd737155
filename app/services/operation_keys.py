"""Operation keys: what makes a repeated submit the same submit (native-api N1, details D1, D18)."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Row, select

from app.adapters.database import Transaction
from app.domain.errors import BadRequest, OperationKeyMismatch
from app.models import OperationKey
from app.services.accounts import Caller
from app.services.store_request import Claim

ANONYMOUS_KEY_LENGTH = 22


@dataclass(frozen=True, slots=True)
class Repeatable:
    """The operation key that a submit came with, if any, and the address it came from."""

    key: str | None = None
    address: str = ""

    def claim(self, caller: Caller, fingerprint: Callable[[], str]) -> Claim | None:
        """What to claim for a body, whose fingerprint is only made for a key; None without one.

        Raises BadRequest for a key that cannot be one.
        """
        if self.key is None:
            return None
        shortest = ANONYMOUS_KEY_LENGTH if caller.is_anonymous else 1
        if not shortest <= len(self.key) <= 255 or not self.key.isprintable():
            raise BadRequest(f"operation_key: must have {shortest} to 255 printable characters.", param="operation_key")
        return Claim(key=self.key, scope=self._scope(caller), fingerprint=fingerprint())

    def _scope(self, caller: Caller) -> str:
        """What keeps apart the operation keys of those who share an account: address or shared key (details D18)."""
        if caller.is_anonymous:
            return self.address
        return f"key:{caller.key.id}" if caller.key.is_shared else ""


def claimed_before(transaction: Transaction, caller: Caller, claim: Claim | None) -> UUID | None:
    """The request that this key already made, if any.

    Raises OperationKeyMismatch when that had another body.
    """
    claimed = None if claim is None else _claimed(transaction, caller, claim)
    if claim is None or claimed is None:
        return None
    if claimed.fingerprint != claim.fingerprint:
        raise OperationKeyMismatch("This operation key was used with another body. A new request needs a new key.")
    request_id: UUID = claimed.request_id
    return request_id


def is_claimed(transaction: Transaction, caller: Caller, claim: Claim | None) -> bool:
    """Whether this key was used before, with whatever body."""
    return claim is not None and _claimed(transaction, caller, claim) is not None


def _claimed(transaction: Transaction, caller: Caller, claim: Claim) -> Row[tuple[str, UUID]] | None:
    return transaction.execute(
        select(OperationKey.fingerprint, OperationKey.request_id).where(
            OperationKey.user_id == caller.user_id,
            OperationKey.scope == claim.scope,
            OperationKey.key == claim.key,
        )
    ).one_or_none()
