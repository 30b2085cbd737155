"""`horde filters` as an operator types it."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from cli.main import main

Run = Callable[..., Result]


@pytest.fixture
def filters(quiet_redis: str, database_url: str) -> Run:
    """Runs `horde filters` with these words."""
    environment = {"DATABASE_URL": database_url, "REDIS_URL": quiet_redis}
    return lambda *words: CliRunner().invoke(main, ["filters", *words], env=environment)


def listed(filters: Run) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = orjson.loads(filters("list", "--json").output)
    return rows


def test_a_filter_is_added_listed_tried_and_removed(filters: Run) -> None:
    added = orjson.loads(filters("add", "forbidd.n", "--description", "why", "--json").output)
    assert added["kind"] == "block"
    assert [(row["id"], row["pattern"], row["description"]) for row in listed(filters)] == [
        (added["id"], "forbidd.n", "why")
    ]
    assert orjson.loads(filters("test", "A Forbidden text", "--json").output) == [
        {"id": added["id"], "kind": "block", "pattern": "forbidd.n"}
    ]
    assert filters("test", "A good text").output == "none\n"
    assert filters("remove", str(added["id"])).exit_code == 0
    assert listed(filters) == []


def test_a_replacement_makes_a_filter_that_replaces(filters: Run) -> None:
    assert orjson.loads(filters("add", "rude", "--replacement", "", "--json").output)["kind"] == "replace"
    assert listed(filters)[0]["replacement"] == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "("), "pattern: missing"),
        (("add", "x?"), "matches an empty text"),
        (("remove", "99"), "No filter has the id 99"),
    ],
)
def test_what_cannot_be_done_is_explained(filters: Run, words: tuple[str, ...], told: str) -> None:
    result = filters(*words)
    assert result.exit_code == 1
    assert told in result.output
