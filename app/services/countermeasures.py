"""Keeps requests out: those of addresses banned or in a timeout, and everybody's while the horde is in maintenance.

Timeouts live in Redis alone (wire reference 4.12): they are short, and without Redis nobody is
kept out. Each process looks at all of them every two seconds, so a call costs no round trip.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from app.domain.addresses import source_of
from app.domain.errors import (
    CorruptPrompt,
    DeletedUser,
    InvalidApiKey,
    MaintenanceMode,
    SharedKeyExpired,
    TimeoutIp,
    UserBanned,
)
from app.domain.modes import Mode
from app.domain.redis_keys import suspicion_key
from app.domain.suspicion import Suspected, is_this_machine, timeout_seconds
from app.services.accounts import authenticate
from app.services.address_bans import AddressBans
from app.services.modes import Modes
from app.services.runtime import Runtime
from app.services.suspicions import suspect

FRESH_SECONDS = 2.0
MOST_TIMEOUTS = 100_000
SUSPICION_MEMORY_SECONDS = 24 * 3600

log = structlog.get_logger(__name__)


class Timeouts:
    """This process's view of the addresses that are kept out."""

    def __init__(self, runtime: Runtime) -> None:
        self._bus = runtime.bus
        self._step = runtime.settings.timeout_step_seconds
        self._until: dict[str, float] = {}
        self._looked_at = float("-inf")

    def check(self, address: str) -> None:
        """Raise TimeoutIp while an address is kept out."""
        if not address:
            return
        left = self._look().get(source_of(address), 0.0) - time.time()
        if left > 0:
            seconds = math.ceil(left)
            raise TimeoutIp(
                f"This address is kept out for another {seconds} seconds, because prompts from it were refused.",
                retry_after_seconds=seconds,
            )

    def report(self, address: str) -> None:
        """Keep an address out, longer each time that it was reported within a day."""
        if is_this_machine(address):
            return
        source = source_of(address)
        counted = self._bus.add_up([(suspicion_key(source), 1, SUSPICION_MEMORY_SECONDS)])
        if not counted:
            return
        seconds = timeout_seconds(counted[0] - 1, self._step)
        self._bus.keep_out(source, time.time() + seconds)
        self._looked_at = float("-inf")
        log.warning("address.timed_out", seconds=seconds, suspicions=counted[0])

    def _look(self) -> dict[str, float]:
        if time.monotonic() - self._looked_at >= FRESH_SECONDS:
            found = self._bus.kept_out(MOST_TIMEOUTS)
            self._until = found if found is not None else {}
            self._looked_at = time.monotonic()
        return self._until


class Countermeasures:
    """What every submit of a request passes through, chat and text alike (details D1)."""

    def __init__(self, runtime: Runtime, modes: Modes, timeouts: Timeouts) -> None:
        self._database = runtime.database
        self._modes = modes
        self._timeouts = timeouts
        self._bans = AddressBans(runtime.database)

    @contextmanager
    def screened(self, api_key: str, address: str) -> Iterator[None]:
        """Let a submit happen inside, and note a prompt that it refuses.

        Raises MaintenanceMode, AddressBanned or TimeoutIp.
        """
        if Mode.MAINTENANCE in self._modes.current():
            raise MaintenanceMode("The horde is in maintenance and takes no requests. Try again later.")
        self._bans.check(address)
        self._timeouts.check(address)
        try:
            yield
        except CorruptPrompt:
            self._timeouts.report(address)
            self._suspect_sender(api_key)
            raise

    @property
    def warns(self) -> bool:
        """Whether a requester is told what attackers would like to know; not while the horde is raided."""
        return Mode.RAID not in self._modes.current()

    def _suspect_sender(self, api_key: str) -> None:
        with self._database.statements() as transaction:
            try:
                sender = authenticate(transaction, api_key)
            except (InvalidApiKey, DeletedUser, SharedKeyExpired, UserBanned):
                return
            if not sender.is_anonymous and not sender.trusted:
                suspect(transaction, sender.user_id, Suspected.CORRUPT_PROMPT)
