"""Runs statements that are written as SQL through psycopg alone, on a connection that SQLAlchemy keeps (ADR 0087)."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import psycopg
from sqlalchemy import Connection, Result, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData
from sqlalchemy.exc import DBAPIError

REMEMBERED = 1000
"""Translated statements of a process; ours are fewer."""

_NUMBERED = postgresql.dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
"""Writes `$1` for a value, as PostgreSQL wants it: psycopg then sends a long statement without reading it again."""

_NO_ROWS = SimpleResultMetaData(())


@lru_cache(REMEMBERED)
def plain_statement(sql: str) -> "PlainStatement":
    """Return a statement, written with `:name` for a value, as psycopg takes it."""
    return PlainStatement(sql)


class PlainStatement:
    """One statement, translated once for its process."""

    def __init__(self, sql: str) -> None:
        compiled = text(sql).compile(dialect=_NUMBERED)
        self._sql = compiled.string.encode()
        self._names = tuple(compiled.positiontup or ())
        self._columns = _NO_ROWS
        self._width = 0

    def run(self, connection: Connection, values: Mapping[str, Any]) -> Result[Any]:
        """Run it with these values; its rows are in memory when it returns.

        Raises the DBAPIError that SQLAlchemy has for what psycopg says. A connection that is lost, or was
        left in the middle of an answer, is not used again.
        """
        link = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        try:
            return self._rows(psycopg.RawCursor(link), values)
        except psycopg.Error as error:
            raise self._translated(connection, error, is_lost=link.closed or link.broken) from error
        except BaseException as error:
            connection.invalidate(error)
            raise

    def _rows(self, cursor: "psycopg.RawCursor[Any]", values: Mapping[str, Any]) -> Result[Any]:
        cursor.execute(self._sql, [values[name] for name in self._names])
        answer = cursor.pgresult
        if answer is None or not answer.nfields:
            return IteratorResult(_NO_ROWS, iter(()))
        if answer.nfields != self._width:
            self._columns = SimpleResultMetaData([column.name for column in cursor.description or ()])
            self._width = answer.nfields
        return IteratorResult(self._columns, iter(cursor.fetchall()))

    def _translated(self, connection: Connection, error: psycopg.Error, *, is_lost: bool) -> Exception:
        if is_lost:
            connection.invalidate(error)
        return DBAPIError.instance(
            self._sql.decode(),
            None,
            error,
            psycopg.Error,
            hide_parameters=True,
            connection_invalidated=is_lost,
            dialect=connection.dialect,
        )
