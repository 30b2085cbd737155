"""Decides whether a worker may pop: its owner's standing, its address, its name (wire reference 4.11)."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, text

from app.adapters.database import Transaction
from app.domain.addresses import source_of
from app.domain.declaration import Declaration
from app.domain.errors import (
    TooManyNewIps,
    TooManySameIps,
    TooManyWorkers,
    TooManyWorkersTrusted,
    UnsafeIp,
    WorkerFlaggedMaintenance,
    WorkerInviteOnly,
)
from app.domain.modes import Mode
from app.domain.name_rules import check_worker_names, parse_words
from app.domain.redis_keys import addresses_key
from app.domain.suspicion import is_this_machine, is_within, parse_networks
from app.services.address_bans import AddressBans
from app.services.countermeasures import Timeouts
from app.services.modes import Modes
from app.services.runtime import Runtime

HOUR_SECONDS = 3600


class WorkerScreen:
    """What every pop passes through before it is noted that the worker is here."""

    def __init__(self, runtime: Runtime) -> None:
        self._bus = runtime.bus
        self._settings = runtime.settings
        self._modes = Modes(runtime)
        self._timeouts = Timeouts(runtime)
        self._bans = AddressBans(runtime.database)
        self._unsafe = parse_networks(runtime.settings.unsafe_networks)
        self._words = parse_words(runtime.settings.refused_name_words)

    def __call__(self, transaction: Transaction, seen: Row[Any], declaration: Declaration, address: str) -> None:
        """Check a worker of an owner that a pop identified; only what comes anew is looked at closely.

        Raises WorkerFlaggedMaintenance, AddressBanned, TimeoutIp, UnsafeIp, TooManyNewIps, and for a worker that
        was not online BadRequest, a Profane refusal, TooManyWorkers, TooManyWorkersTrusted,
        TooManySameIps or WorkerInviteOnly.
        """
        if seen.flagged:
            raise WorkerFlaggedMaintenance("This account is flagged, so its workers get no jobs. Ask a moderator.")
        self._bans.check(address, transaction)
        self._timeouts.check(address)
        self._check_network(transaction, seen, address)
        if seen.worker_id is None:
            check_worker_names(declaration.name, declaration.bridge_agent, self._words)
        source = source_of(address) if address else ""
        if seen.address != source and not is_this_machine(address):
            self._check_new_source(seen, source)
        if not self._was_online(seen):
            self._check_slots(transaction, seen, source)
            self._check_invitation(transaction, seen)

    def _check_network(self, transaction: Transaction, seen: Row[Any], address: str) -> None:
        if seen.trusted or seen.vpn or not is_within(address, self._unsafe):
            return
        if self._modes.is_on(transaction, Mode.RAID):
            raise UnsafeIp("This worker cannot be taken right now.")
        raise UnsafeIp(
            "This horde takes no workers from this network, as its users cannot be told apart. "
            "Ask a moderator for the vpn role, or work from another network."
        )

    def _check_new_source(self, seen: Row[Any], source: str) -> None:
        if seen.trusted or seen.vpn:
            return
        most = self._settings.addresses_per_hour
        if self._bus.members_with(addresses_key(seen.user_id), source, HOUR_SECONDS) > most:
            raise TooManyNewIps(
                f"Workers of this account came from more than {most} addresses within an hour. Try again later.",
                retry_after_seconds=HOUR_SECONDS,
            )

    def _was_online(self, seen: Row[Any]) -> bool:
        if seen.worker_id is None:
            return False
        silence = timedelta(seconds=self._settings.worker_online_seconds)
        return bool(datetime.now(UTC) - seen.last_seen_at < silence)

    def _check_slots(self, transaction: Transaction, seen: Row[Any], source: str) -> None:
        values = {"owner": seen.user_id, "source": source, "worker_id": seen.worker_id}
        counted = transaction.execute(_OTHERS, values | {"online": self._settings.worker_online_seconds}).one()
        usual = self._settings.workers_trusted if seen.trusted else self._settings.workers_untrusted
        most = max(usual, seen.worker_invited)
        if counted.owned >= most:
            refusal = TooManyWorkersTrusted if seen.trusted else TooManyWorkers
            raise refusal(
                f"{counted.owned} workers of this account are online, and more are not taken. Stop one, or ask a "
                "moderator for an invitation."
            )
        if counted.here >= most and not is_this_machine(source.removesuffix("/64")):
            raise TooManySameIps(f"{counted.here} workers are online from this address, and more are not taken.")

    def _check_invitation(self, transaction: Transaction, seen: Row[Any]) -> None:
        if seen.worker_id is not None or not self._modes.is_on(transaction, Mode.INVITE_ONLY):
            return
        known = int(transaction.execute(_KNOWN, {"owner": seen.user_id}).scalar_one())
        if known >= seen.worker_invited:
            raise WorkerInviteOnly(
                f"This horde takes new workers by invitation, and this account may have {seen.worker_invited}. "
                "Ask a moderator."
            )


_KNOWN = text("SELECT count(*) FROM workers WHERE user_id = :owner AND deleted_at IS NULL")

_OTHERS = text(
    """
    SELECT count(*) FILTER (WHERE user_id = :owner) AS owned, count(*) FILTER (WHERE address = :source) AS here
    FROM workers
    WHERE (user_id = :owner OR address = :source) AND deleted_at IS NULL
      AND last_seen_at > now() - make_interval(secs => :online) AND id IS DISTINCT FROM CAST(:worker_id AS uuid)
    """
)
