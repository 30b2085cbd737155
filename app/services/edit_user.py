"""Changes accounts, by themselves, by moderators and by admins (wire reference 2.7)."""

import secrets
from collections.abc import Mapping
from typing import Any

import structlog
from sqlalchemy import select, update

from app.adapters.database import Transaction
from app.domain.errors import (
    AnonForbiddenUserMod,
    NonServiceForbidden,
    NotAdmin,
    NotModerator,
    NotPrivileged,
    ProfaneUserContact,
    ProfaneUserName,
    UserNotFound,
)
from app.domain.name_rules import is_profane, parse_words
from app.domain.system_accounts import ANONYMOUS_ID
from app.domain.user_edit import Standing, UserChange, parse_user_edit
from app.models import User
from app.models.account import AccountKind
from app.services.accounts import Caller, authenticate
from app.services.passkeys import PASSKEY_BYTES, set_passkey
from app.services.runtime import Runtime
from app.services.suspicions import forget_suspicions

log = structlog.get_logger(__name__)


class EditUser:
    """The use case of `PUT /users/{id}`."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database
        self._words = parse_words(runtime.settings.refused_name_words)

    def __call__(self, api_key: str, user_id: int, body: Mapping[str, object]) -> dict[str, Any]:
        """Change an account and return what was changed, and nothing else.

        Raises InvalidApiKey, UserNotFound, AnonForbiddenUserMod, NotPrivileged, NotModerator, NotAdmin,
        NonServiceForbidden, a Profane refusal, or what `parse_user_edit` raises; then nothing is changed.
        """
        with self._database.transaction() as transaction:
            caller = authenticate(transaction, api_key)
            kind = transaction.execute(select(User.kind).where(User.id == user_id).with_for_update()).scalar()
            if kind is None or kind == AccountKind.SYSTEM:
                raise UserNotFound(f"No account has the id {user_id}.")
            if ANONYMOUS_ID in (user_id, caller.user_id):
                raise AnonForbiddenUserMod("The anonymous account cannot be changed, and changes nobody.")
            standing = _standing(caller, user_id)
            changes = parse_user_edit(body)
            for change in changes:
                _check_standing(change, standing)
            changed: dict[str, Any] = {}
            for change in changes:
                changed |= self._apply(transaction, user_id, AccountKind(kind), change)
        log.info("account.edited", user_id=user_id, by=caller.user_id, keys=sorted(changed))
        return changed

    def _apply(self, transaction: Transaction, user_id: int, kind: AccountKind, change: UserChange) -> dict[str, Any]:
        value = change.value
        if change.key == "reset_suspicion":
            if value:
                forget_suspicions(transaction, user_id)
            return {"new_suspicion": 0} if value else {}
        if change.key == "generate_proxy_passkey":
            return _new_passkey(transaction, user_id, kind) if value else {}
        if change.key == "service":
            return _set_service(transaction, user_id, kind, is_service=value)
        if change.key == "username" and is_profane(value, self._words):
            raise ProfaneUserName("username: holds a word that this horde does not show.", param="username")
        if change.key == "contact" and is_profane(value, self._words):
            raise ProfaneUserContact("contact: holds a word that this horde does not show.", param="contact")
        transaction.execute(update(User).where(User.id == user_id).values({change.key: value}))
        return {change.key: value}


def _standing(caller: Caller, user_id: int) -> Standing:
    """As what the caller comes to this account. Raises NotPrivileged."""
    if not caller.key.is_shared and caller.kind is AccountKind.ADMIN:
        return Standing.ADMIN
    if caller.moderates:
        return Standing.MODERATOR
    if caller.user_id != user_id or caller.key.is_shared:
        raise NotPrivileged("Only the account itself, with a key of its own, or a moderator may change it.")
    return Standing.SELF


def _check_standing(change: UserChange, standing: Standing) -> None:
    if change.needs > standing:
        refusal = NotAdmin if change.needs is Standing.ADMIN else NotModerator
        raise refusal(f"{change.key}: this needs the key of {_WHO[change.needs]}.", param=change.key)


_WHO = {Standing.MODERATOR: "a moderator", Standing.ADMIN: "an admin"}


def _new_passkey(transaction: Transaction, user_id: int, kind: AccountKind) -> dict[str, Any]:
    """Give a service account a new passkey, which is shown once and never again."""
    if kind is not AccountKind.SERVICE:
        raise NonServiceForbidden("generate_proxy_passkey: only a service account has a passkey.")
    passkey = secrets.token_urlsafe(PASSKEY_BYTES)
    set_passkey(transaction, user_id, passkey)
    return {"proxy_passkey": passkey}


def _set_service(transaction: Transaction, user_id: int, kind: AccountKind, *, is_service: bool) -> dict[str, Any]:
    """Make an ordinary account a service, or the reverse; then its passkey is good no more."""
    if kind not in (AccountKind.USER, AccountKind.SERVICE):
        raise NotPrivileged(f"service: an account of the kind '{kind.value}' keeps its kind.", param="service")
    values: dict[str, str | None] = {"kind": (AccountKind.SERVICE if is_service else AccountKind.USER).value}
    if not is_service:
        values |= {"passkey_sha256": None, "previous_passkey_sha256": None}
    transaction.execute(update(User).where(User.id == user_id).values(values))
    return {"service": is_service}
