"""`horde incident` as an operator types it."""

from collections.abc import Callable

import orjson
import pytest
from click.testing import CliRunner, Result

from cli.main import main
from tests.support.services import LocalServices

Run = Callable[..., Result]


@pytest.fixture
def incident(services: LocalServices, database_url: str) -> Run:
    """Runs `horde incident` with these words."""
    environment = {"DATABASE_URL": database_url, "REDIS_URL": services.redis_url}
    return lambda *words: CliRunner().invoke(main, ["incident", *words], env=environment)


def test_a_line_is_set_shown_and_cleared(incident: Run) -> None:
    assert orjson.loads(incident("show", "--json").output) == {"text": None, "since": None}
    assert incident("set", "Slow today.").exit_code == 0
    shown = orjson.loads(incident("show", "--json").output)
    assert shown["text"] == "Slow today."
    assert shown["since"]
    assert orjson.loads(incident("clear", "--json").output) == {"cleared": True}
    assert orjson.loads(incident("clear", "--json").output) == {"cleared": False}


def test_an_empty_line_is_refused_with_a_reason(incident: Run) -> None:
    refused = incident("set", " ")
    assert refused.exit_code == 1
    assert "1 to 500 printable characters" in refused.output
