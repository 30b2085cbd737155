"""Keeps out callers from networks that the operator banned, by this process's view of them."""

import time
from datetime import datetime

from sqlalchemy import text

from app.adapters.database import Database, Transaction
from app.domain.errors import AddressBanned
from app.domain.networks import NetworkTable
from app.services.banned import IN_FORCE, terms

FRESH_SECONDS = 2.0
"""A ban is in force in every process after this long."""

Standing = tuple[str | None, datetime | None]
"""Why a network is banned, and until when."""


class AddressBans:
    """This process's view of the banned networks; so most calls need no statement for it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table: NetworkTable[Standing] = NetworkTable()
        self._version: str | None = None
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
        raise AddressBanned(
            f"This network is banned{terms(*standing)}. Call from another one, or ask the operator of this horde."
        )

    def _fresh(self, transaction: Transaction | None) -> NetworkTable[Standing]:
        if time.monotonic() - self._looked_at < FRESH_SECONDS:
            return self._table
        if transaction is None:
            with self._database.statements() as opened:
                return self._fresh(opened)
        rows = transaction.execute(_NETWORKS, {"seen": self._version}).all()
        if rows[0].version != self._version:
            found = ((row.network, (row.reason, row.ends_at)) for row in rows if row.network is not None)
            self._table, self._version = NetworkTable(found), rows[0].version
        self._looked_at = time.monotonic()
        return self._table


# Thousands of networks are read when one of them changed, and not each time: a new one is the
# newest, and one that ended or was taken back is missing from the count.
_NETWORKS = text(
    f"""
    WITH banned AS (
        SELECT b.network, b.reason, b.ends_at, b.created_at FROM bans b
        WHERE b.network IS NOT NULL AND {IN_FORCE.format(ban="b")}
    ), state AS (
        SELECT count(*) || ' ' || COALESCE(CAST(max(created_at) AS text), '') AS version FROM banned
    )
    SELECT s.version, b.network, b.reason, b.ends_at
    FROM state s LEFT JOIN banned b ON s.version IS DISTINCT FROM CAST(:seen AS text)
    """  # noqa: S608 - joined from constants
)
