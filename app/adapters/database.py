"""PostgreSQL: the engine, its limits, and transactions whose effects run after the commit."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg
from prometheus_client import Counter
from sqlalchemy import Connection, Engine, Executable, Result, TextClause, create_engine, event, text
from sqlalchemy.exc import DisconnectionError

from app.adapters.plain_statements import plain_statement
from config.settings import Settings

CONNECT_TIMEOUT_SECONDS = 3
STATEMENT_TIMEOUT_MILLISECONDS = 15_000
IDLE_IN_TRANSACTION_MILLISECONDS = 30_000
TRUSTED_IDLE_SECONDS = 1.0
"""A connection that rested longer is asked for a sign of life before it is used."""

STATEMENTS = Counter("horde_sql_statements", "SQL statements sent to PostgreSQL.")

Effect = Callable[[], None]


class Transaction:
    """Statements that belong together, and what is to happen once they are committed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._effects: list[Effect] = []

    def execute(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Result[Any]:
        """Run one statement.

        One that is written as SQL goes straight to psycopg (ADR 0087), unless it has options of its own.
        """
        STATEMENTS.inc()
        if isinstance(statement, TextClause) and not statement.get_execution_options():
            return plain_statement(statement.text).run(self._connection, values or {})
        return self._connection.execute(statement, values)

    def after_commit(self, effect: Effect) -> None:
        """Run `effect` once everything is committed and the connection is back in the pool.

        A transaction that is rolled back drops its effects. An effect is a hint to
        others and must not raise: whatever it announces is in the row (architecture A4).
        """
        self._effects.append(effect)

    def release_effects(self) -> None:
        """Run what was to happen after the commit.

        Among `statements` each has committed when it returns, so there it may be called between them,
        for what should not wait until the connection is back.
        """
        effects, self._effects = self._effects, []
        for effect in effects:
            effect()


BY_INDEX = " -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"
"""Read a table by an index where there is one, however small the table is: a plan outlives the moment in which
the queue was empty. And entry by entry: such a scan marks what it finds dead, where a bitmap reads it again each
time (ADR 0090). Before PostgreSQL 18 a plan that needs a sequential scan counts as so dear that it would be compiled.
"""

PLANNED_ONCE = " -c plan_cache_mode=force_generic_plan"
"""Plan a statement once a connection and not once a call: planning the claim takes longer than running it.

For a whole connection, since a setting for the claim alone would need a transaction around it:
three more round trips. Only for processes whose statements are all short and found by an index.
"""


class Database:
    """One process's connections to PostgreSQL; `planned_once` keeps one plan for each statement.

    The connection that was used last is used next: with few at work at a time, the caches of their servers
    stay warm (ADR 0087).
    """

    def __init__(self, settings: Settings, *, pool_size: int, application: str, planned_once: bool = False) -> None:
        self.engine: Engine = create_engine(
            settings.database_url,
            isolation_level="AUTOCOMMIT",
            skip_autocommit_rollback=True,
            pool_size=pool_size,
            pool_use_lifo=True,
            max_overflow=2,
            pool_timeout=5,
            json_serializer=_dump_json,
            json_deserializer=orjson.loads,
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "application_name": f"horde-{application}",
                "options": (
                    f"-c statement_timeout={STATEMENT_TIMEOUT_MILLISECONDS}"
                    f" -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_MILLISECONDS}"
                    f"{BY_INDEX}{PLANNED_ONCE if planned_once else ''}"
                ),
            },
        )
        self._joining = self.engine.execution_options(isolation_level="READ COMMITTED")
        self._lost_at = float("-inf")
        event.listen(self.engine, "connect", _note_opening)
        event.listen(self.engine, "invalidate", self._note_loss)
        event.listen(self.engine, "checkin", _note_rest)
        event.listen(self.engine, "checkout", self._check_usable)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Open a transaction: committed at the end of the block, rolled back if it raises.

        Its effects run last, with no connection held.
        """
        with self._joining.begin() as connection:
            opened = Transaction(connection)
            yield opened
        opened.release_effects()

    @contextmanager
    def statements(self) -> Iterator[Transaction]:
        """Lend a connection on which each statement commits by itself, in one round trip instead of three.

        For reads, and for writes that are whole in one statement. A block that raises
        drops its effects, so register them after the statement that they announce.
        """
        with self.engine.connect() as connection:
            opened = Transaction(connection)
            yield opened
        opened.release_effects()

    def ping(self) -> None:
        """Ask the server for a sign of life; raises SQLAlchemyError when it gives none."""
        with self.statements() as transaction:
            transaction.execute(text("SELECT 1"))

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def reopen_after_fork(self) -> None:
        """Leave the parent's connections alone and start a pool of this child's own."""
        self.engine.dispose(close=False)

    def _note_loss(self, _connection: Any, _record: Any, error: BaseException | None) -> None:
        if isinstance(error, psycopg.Error):
            self._lost_at = time.monotonic()

    def _check_usable(self, dbapi_connection: Any, record: Any, _proxy: Any) -> None:
        if record.info["opened_at"] < self._lost_at:
            raise DisconnectionError("Another connection was lost, and this one is older.")
        rested_since = record.info.get("rested_since")
        if rested_since is None or time.monotonic() - rested_since < TRUSTED_IDLE_SECONDS:
            return
        dialect = self.engine.dialect
        try:
            dialect.do_ping(dbapi_connection)
        except dialect.loaded_dbapi.Error as error:
            if dialect.is_disconnect(error, dbapi_connection, None):
                raise DisconnectionError from error
            raise


def _note_opening(_connection: Any, record: Any) -> None:
    record.info["opened_at"] = time.monotonic()


def _note_rest(_connection: Any, record: Any) -> None:
    record.info["rested_since"] = time.monotonic()


def _dump_json(value: object) -> str:
    return orjson.dumps(value).decode()
