"""Keeps out callers from networks that the operator banned, by this process's view of them."""

import time
from datetime import UTC, datetime

from sqlalchemy import text

from app.adapters.database import Database, Transaction
from app.domain.errors import AddressBanned
from app.domain.networks import NetworkTable
from app.services.banned import IN_FORCE

FRESH_SECONDS = 2.0
"""A ban is in force in every process after this long."""

Standing = tuple[str | None, datetime | None]
"""Why a network is banned, and until when."""


class AddressBans:
    """This process's view of the banned networks; so most calls need no statement for it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table: NetworkTable[Standing] = NetworkTable()
        self._looked_at = float("-inf")

    def check(self, address: str, transaction: Transaction | None = None) -> None:
        """Raise AddressBanned for an address of a banned network.

        A look at the table, once in two seconds, goes over the caller's transaction if there is one.
        """
        if not address:
            return
        standing = self._fresh(transaction).find(address)
        if standing is None:
            return
        reason, ends_at = standing
        until = "" if ends_at is None else f" until {ends_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        because = f": {reason.rstrip('.')}" if reason else ""
        raise AddressBanned(
            f"This network is banned{until}{because}. Call from another one, or ask the operator of this horde."
        )

    def _fresh(self, transaction: Transaction | None) -> NetworkTable[Standing]:
        if time.monotonic() - self._looked_at < FRESH_SECONDS:
            return self._table
        if transaction is None:
            with self._database.statements() as opened:
                return self._fresh(opened)
        rows = transaction.execute(_NETWORKS).all()
        self._table = NetworkTable((row.network, (row.reason, row.ends_at)) for row in rows)
        self._looked_at = time.monotonic()
        return self._table


_NETWORKS = text(
    f"SELECT b.network, b.reason, b.ends_at FROM bans b WHERE b.network IS NOT NULL AND {IN_FORCE.format(ban='b')}"  # noqa: S608 - joined from constants
)
