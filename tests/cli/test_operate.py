"""`horde worker` and `horde queue` as an operator types them."""

from collections.abc import Callable

import orjson
import pytest
from click.testing import CliRunner, Result

from cli.main import main

Run = Callable[..., Result]


@pytest.fixture
def run(quiet_redis: str, database_url: str) -> Run:
    """Runs `horde` with these words."""
    environment = {"DATABASE_URL": database_url, "REDIS_URL": quiet_redis}
    return lambda *words: CliRunner().invoke(main, words, env=environment)


@pytest.mark.parametrize("words", [("worker", "list"), ("worker", "list", "--all"), ("queue",)])
def test_an_empty_horde_shows_nothing(run: Run, words: tuple[str, ...]) -> None:
    assert run(*words).output == "none\n"
    assert orjson.loads(run(*words, "--json").output) == []


@pytest.mark.parametrize("command", ["maintenance", "pause"])
@pytest.mark.parametrize("end", [(), ("--end",)])
def test_a_worker_that_nobody_knows_is_refused(run: Run, command: str, end: tuple[str, ...]) -> None:
    refused = run("worker", command, "nobody", *end)
    assert refused.exit_code == 1
    assert "No worker has this id or name." in refused.output
