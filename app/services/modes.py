"""The horde's modes: stored in one table, remembered by each process for a second (wire reference 2.8).

Whoever enforces a mode asks `Modes.is_on` inside its own transaction.
"""

import time
from collections.abc import Mapping

import structlog
from sqlalchemy import select, text

from app.adapters.database import Transaction
from app.domain.errors import NoHordeModSelected
from app.domain.modes import PUBLIC_MODES, Mode
from app.models import ModeFlag
from app.services.accounts import authenticate
from app.services.moderators import require_moderator
from app.services.runtime import Runtime

FRESH_SECONDS = 1.0
"""A mode that was set is in force in every process after this long."""

log = structlog.get_logger(__name__)


class Modes:
    """This process's view of the modes, and the use cases of `/status/modes`."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database
        self._on: frozenset[Mode] = frozenset()
        self._looked_at = float("-inf")

    def is_on(self, transaction: Transaction, mode: Mode) -> bool:
        """Whether a mode is on, as of a second ago at most."""
        return mode in self.now(transaction)

    def now(self, transaction: Transaction) -> frozenset[Mode]:
        """Return the modes that are on, as of a second ago at most."""
        if time.monotonic() - self._looked_at >= FRESH_SECONDS:
            self._on = load_modes(transaction)
            self._looked_at = time.monotonic()
        return self._on

    def current(self) -> frozenset[Mode]:
        """Return the modes that are on, as of a second ago at most; for callers without a transaction of their own."""
        if time.monotonic() - self._looked_at < FRESH_SECONDS:
            return self._on
        with self._database.statements() as transaction:
            return self.now(transaction)

    def read(self, api_key: str | None) -> dict[str, bool]:
        """Return the modes as of now; with a moderator's key also those that are not for everybody.

        Raises InvalidApiKey for a key that is no good.
        """
        with self._database.statements() as transaction:
            sees_all = api_key is not None and authenticate(transaction, api_key).moderates
            on = load_modes(transaction)
        return {mode.value: mode in on for mode in (Mode if sees_all else PUBLIC_MODES)}

    def change(self, api_key: str, wanted: Mapping[Mode, bool]) -> dict[str, bool]:
        """Set modes and return those that were named.

        Raises InvalidApiKey, NotModerator, and NoHordeModSelected when none is named.
        """
        with self._database.transaction() as transaction:
            moderator = require_moderator(transaction, api_key)
            if not wanted:
                raise NoHordeModSelected(f"Name a mode to set: {', '.join(Mode)}.")
            for mode, is_on in wanted.items():
                set_mode(transaction, mode, is_on=is_on)
        self._looked_at = float("-inf")
        log.info("modes.changed", user_id=moderator.user_id, **{mode.value: is_on for mode, is_on in wanted.items()})
        return {mode.value: is_on for mode, is_on in wanted.items()}


def load_modes(transaction: Transaction) -> frozenset[Mode]:
    """Return the modes that are on, from the table."""
    return frozenset(Mode(name) for name in transaction.execute(select(ModeFlag.name).where(ModeFlag.is_on)).scalars())


def set_mode(transaction: Transaction, mode: Mode, *, is_on: bool) -> None:
    """Turn a mode on or off."""
    transaction.execute(_SET, {"name": mode.value, "is_on": is_on})


_SET = text(
    """
    INSERT INTO modes (name, is_on) VALUES (:name, :is_on)
    ON CONFLICT (name) DO UPDATE SET is_on = excluded.is_on, changed_at = now()
    """
)
