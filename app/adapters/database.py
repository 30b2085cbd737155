"""PostgreSQL: the engine, its limits, and transactions whose effects run after the commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import orjson
from prometheus_client import Counter
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.orm import Session, sessionmaker

from config.settings import Settings

CONNECT_TIMEOUT_SECONDS = 3
STATEMENT_TIMEOUT_MILLISECONDS = 15_000
IDLE_IN_TRANSACTION_MILLISECONDS = 30_000

STATEMENTS = Counter("horde_sql_statements", "SQL statements sent to PostgreSQL.")

Effect = Callable[[], None]


def after_commit(session: Session, effect: Effect) -> None:
    """Run `effect` once this session's transaction is committed and its connection is back in the pool.

    A rolled-back transaction drops its effects. An effect is a hint to others and
    must not raise: whatever it announces is in the row (architecture A4).
    """
    session.info.setdefault("pending", []).append(effect)


def _release_effects(session: Session) -> None:
    session.info.setdefault("due", []).extend(session.info.pop("pending", ()))


def _drop_effects(session: Session) -> None:
    session.info.pop("pending", None)


def _count_statement(*_: object) -> None:
    STATEMENTS.inc()


def _dump_json(value: object) -> str:
    return orjson.dumps(value).decode()


class Database:
    """One process's connections to PostgreSQL."""

    def __init__(self, settings: Settings, *, pool_size: int, application: str) -> None:
        self._settings = settings
        self._pool_size = pool_size
        self._application = application
        self._open()

    def _open(self) -> None:
        self.engine: Engine = create_engine(
            self._settings.database_url,
            pool_size=self._pool_size,
            max_overflow=2,
            pool_pre_ping=True,
            pool_timeout=5,
            json_serializer=_dump_json,
            json_deserializer=orjson.loads,
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "application_name": f"horde-{self._application}",
                "options": (
                    f"-c statement_timeout={STATEMENT_TIMEOUT_MILLISECONDS}"
                    f" -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_MILLISECONDS}"
                ),
            },
        )
        event.listen(self.engine, "before_cursor_execute", _count_statement)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False, autoflush=False)
        event.listen(self._sessions, "after_commit", _release_effects)
        event.listen(self._sessions, "after_rollback", _drop_effects)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Open a transaction: committed at the end of the block, rolled back if it raises.

        Effects registered with `after_commit` run last, with no connection held.
        """
        session = self._sessions()
        try:
            with session.begin():
                yield session
        finally:
            session.close()
        for effect in session.info.pop("due", ()):
            effect()

    def ping(self) -> None:
        """Ask the server for a sign of life; raises SQLAlchemyError when it gives none."""
        with self.engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def reopen_after_fork(self) -> None:
        """Leave the parent's connections alone and start a pool of this child's own."""
        self.engine.dispose(close=False)
