"""Statements over the pool, on a real PostgreSQL: what they return, and what is left of a connection that breaks."""

import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import TextClause, text
from sqlalchemy.exc import DataError, IntegrityError, NoResultFound, OperationalError, ProgrammingError

from app.adapters.database import Database
from config.settings import Settings

PID = text("SELECT pg_backend_pid()")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A process's connections, planned once as those of the native API."""
    settings = Settings(_env_file=None, database_url=database_url, redis_url="redis://127.0.0.1:1")
    made = Database(settings, pool_size=3, application="test", planned_once=True)
    yield made
    made.close()


@pytest.fixture
def table(database: Database) -> str:
    """A table with one row, whose ids are unique."""
    name = f"t_{uuid4().hex}"
    with database.statements() as transaction:
        transaction.execute(text(f"CREATE TABLE {name} (id int PRIMARY KEY, body jsonb)"))
        transaction.execute(text(f"INSERT INTO {name} VALUES (1, :body)"), {"body": Jsonb({"a": [1]})})  # noqa: S608
    return name


def run(database: Database, statement: str | TextClause, **values: object) -> list[Any]:
    """Run a statement that commits by itself; its rows."""
    with database.statements() as transaction:
        return list(transaction.execute(text(statement) if isinstance(statement, str) else statement, values))


def run_together(database: Database, told: list[str], *statements: str) -> None:
    """Run statements in one transaction, which says that it is committed."""
    with database.transaction() as transaction:
        transaction.after_commit(lambda: told.append("committed"))
        for statement in statements:
            transaction.execute(text(statement))


def pid(database: Database) -> int:
    """The server process behind the connection that is used next."""
    return int(run(database, PID)[0][0])


def test_a_row_is_read_by_name_by_place_and_as_a_mapping(database: Database) -> None:
    ((row),) = run(database, "SELECT 1 AS one, CAST(:word AS text) AS two", word="b")
    assert (row.one, row[1], dict(row._mapping)) == (1, "b", {"one": 1, "two": "b"})


def test_json_is_read_as_what_was_written(database: Database, table: str) -> None:
    assert run(database, f"SELECT body FROM {table}") == [({"a": [1]},)]  # noqa: S608


@pytest.mark.parametrize(
    ("statement", "values", "answer"),
    [
        pytest.param("SELECT :a + :a + :b", {"a": 1, "b": 2}, 4, id="the same value in two places"),
        pytest.param("SELECT :b - :a", {"a": 1, "b": 2}, 1, id="not in the order of the alphabet"),
        pytest.param("SELECT '7'::int + :a", {"a": 1}, 8, id="a cast with colons"),
        pytest.param("SELECT '10%' LIKE '1_%' AND :a = 1", {"a": 1}, True, id="percent signs"),
        pytest.param("SELECT '$1 \\:a' || CAST(:a AS text)", {"a": "!"}, "$1 :a!", id="what looks like a value"),
        pytest.param("SELECT CAST(:a AS int) IS NULL", {"a": None}, True, id="nothing as a value"),
        pytest.param("SELECT CAST(:a AS int[])", {"a": [1, 2]}, [1, 2], id="a list"),
    ],
)
def test_values_stand_where_they_are_named(
    database: Database, statement: str, values: dict[str, object], answer: object
) -> None:
    for _ in range(8):
        assert run(database, statement, **values) == [(answer,)]


def test_a_statement_without_rows_returns_none(database: Database, table: str) -> None:
    with database.statements() as transaction:
        changed = transaction.execute(text(f"UPDATE {table} SET body = NULL"))  # noqa: S608
        assert changed.all() == []


def test_one_row_is_demanded_as_of_any_result(database: Database) -> None:
    with database.statements() as transaction, pytest.raises(NoResultFound):
        transaction.execute(text("SELECT 1 WHERE false")).one()


def test_a_value_that_is_missing_is_a_mistake_of_ours_and_names_itself(database: Database) -> None:
    with pytest.raises(KeyError, match="absent"):
        run(database, "SELECT :absent")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        pytest.param("INSERT INTO {table} VALUES (1)", IntegrityError, id="a row that is there"),
        pytest.param("SELECT nothing FROM {table}", ProgrammingError, id="a column that is not"),
        pytest.param("SELECT 'x'::int FROM {table}", DataError, id="no number"),
    ],
)
def test_what_postgresql_refuses_has_sqlalchemys_name_and_costs_no_connection(
    database: Database, table: str, statement: str, error: type[Exception]
) -> None:
    before = pid(database)
    with pytest.raises(error):
        run(database, statement.format(table=table))
    assert pid(database) == before


def test_a_refusal_does_not_show_the_values(database: Database) -> None:
    with pytest.raises(DataError) as refused:
        run(database, "SELECT CAST(CAST(:secret AS text) AS int)", secret="my-own-words")
    assert refused.value.params is None


def test_a_lost_connection_is_told_and_the_next_statement_has_another(database: Database) -> None:
    lost = pid(database)
    with database.statements() as transaction, pytest.raises(OperationalError) as told:
        transaction.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert told.value.connection_invalidated
    assert pid(database) != lost


def test_when_one_connection_is_lost_those_that_rest_are_not_tried_either(database: Database) -> None:
    with database.statements() as one, database.statements() as other:
        pids = [int(each.execute(PID).scalar_one()) for each in (one, other)]
    with pytest.raises(OperationalError):
        run(database, "SELECT pg_terminate_backend(pid) FROM unnest(CAST(:pids AS int[])) pid", pids=pids)
    assert pid(database) not in pids


def test_a_lost_connection_ends_its_transaction(database: Database, table: str) -> None:
    with pytest.raises(OperationalError):
        run_together(database, [], f"DELETE FROM {table}", "SELECT pg_terminate_backend(pg_backend_pid())")  # noqa: S608
    assert len(run(database, f"SELECT id FROM {table}")) == 1  # noqa: S608


def test_a_connection_that_is_left_in_the_middle_of_an_answer_is_not_used_again(database: Database) -> None:
    """As when the time limit of a task interrupts it."""
    before = pid(database)

    class Interrupted(Exception):
        """What the signal raises."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise Interrupted

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Interrupted):
            run(database, "SELECT pg_sleep(5)")
    finally:
        signal.signal(signal.SIGALRM, previous)
    begun = time.monotonic()
    assert pid(database) != before
    assert time.monotonic() - begun < 2


def test_a_transaction_is_whole_or_nothing(database: Database, table: str) -> None:
    with pytest.raises(IntegrityError):
        run_together(database, [], f"INSERT INTO {table} VALUES (2)", f"INSERT INTO {table} VALUES (1)")  # noqa: S608
    assert run(database, f"SELECT id FROM {table}") == [(1,)]  # noqa: S608


def test_a_statement_alone_is_seen_at_once_and_one_of_a_transaction_at_its_end(database: Database, table: str) -> None:
    insert, count = text(f"INSERT INTO {table} VALUES (:id)"), f"SELECT count(*) FROM {table}"  # noqa: S608
    with database.statements() as alone:
        alone.execute(insert, {"id": 2})
        assert run(database, count) == [(2,)]
    with database.transaction() as together:
        together.execute(insert, {"id": 3})
        assert run(database, count) == [(2,)]
    assert run(database, count) == [(3,)]


def test_a_connection_that_served_a_transaction_commits_each_statement_again(database: Database, table: str) -> None:
    with database.transaction() as together:
        used = together.execute(PID).scalar_one()
    with database.statements() as alone:
        assert alone.execute(PID).scalar_one() == used
        alone.execute(text(f"INSERT INTO {table} VALUES (2)"))  # noqa: S608
        assert run(database, f"SELECT count(*) FROM {table}") == [(2,)]  # noqa: S608


def test_the_connection_that_was_used_last_is_used_next(database: Database) -> None:
    with database.statements() as one, database.statements() as other:
        first, second = (int(each.execute(PID).scalar_one()) for each in (one, other))
    assert first != second
    assert {pid(database) for _ in range(6)} == {first}


def test_effects_follow_what_was_committed_and_are_dropped_with_what_was_not(database: Database, table: str) -> None:
    told: list[str] = []
    with pytest.raises(IntegrityError):
        run_together(database, told, f"INSERT INTO {table} VALUES (1)")  # noqa: S608
    assert told == []
    run_together(database, told, f"INSERT INTO {table} VALUES (2)")  # noqa: S608
    assert told == ["committed"]
