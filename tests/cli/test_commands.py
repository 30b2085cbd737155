"""The `horde` command as an operator uses it: what it prints, and how it refuses."""

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import create_engine, text

from cli.main import main
from config.settings import load_settings

Run = Callable[..., Result]


@pytest.fixture
def run(quiet_redis: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `horde` with these words, over a database of the test's own."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("REDIS_URL", quiet_redis)

    def horde(*words: str) -> Result:
        return CliRunner().invoke(main, list(words))

    return horde


@pytest.fixture
def ann(run: Run) -> str:
    """The id of an account."""
    return str(json.loads(run("user", "create", "ann", "--json").output)["id"])


def test_a_new_account_gets_a_key_that_is_shown_once(run: Run) -> None:
    made = json.loads(run("user", "create", "ann", "--json").output)
    assert len(made["api_key"]) == 22
    assert made["api_key"] not in run("user", "show", str(made["id"])).output


def test_an_account_can_have_more_keys_and_lose_them(run: Run, ann: str) -> None:
    key_id = str(json.loads(run("key", "create", ann, "--name", "laptop", "--json").output)["key_id"])
    assert run("key", "revoke", key_id).exit_code == 0
    assert run("key", "revoke", key_id).exit_code == 1


def test_granted_kudos_are_on_the_account_and_the_books_balance(run: Run, ann: str) -> None:
    run("kudos", "grant", ann, "12.5")
    assert json.loads(run("user", "show", ann, "--json").output)["kudos"] == 26.5
    checked = run("kudos", "check", "--at-rest")
    assert (checked.exit_code, checked.output) == (0, "every rule holds\n")


def test_a_broken_rule_is_named_and_ends_with_1(run: Run, ann: str) -> None:
    run("kudos", "grant", ann, "1")
    engine = create_engine(load_settings().database_url)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM ledger_entries WHERE amount < 0"))
    engine.dispose()
    checked = run("kudos", "check", "--json")
    assert checked.exit_code == 1
    assert json.loads(checked.output)[0]["rule"] == "the entries of every movement sum to zero"


@pytest.mark.parametrize("amount", ["nan", "inf", "-1", "0", "1.0001", "much", "1e30"])
def test_an_amount_that_is_none_is_refused(run: Run, ann: str, amount: str) -> None:
    refused = run("kudos", "grant", ann, "--", amount)
    assert refused.exit_code == 1
    assert "amount: must" in refused.output
    assert json.loads(run("user", "show", ann, "--json").output)["kudos"] == 14.0


@pytest.mark.parametrize(
    "words",
    [
        ("user", "show", "{id}"),
        ("key", "create", "{id}"),
        ("key", "revoke", "{id}"),
        ("kudos", "grant", "{id}", "5"),
    ],
)
@pytest.mark.parametrize("row_id", ["4711", "99999999999999999999", "x"])
def test_an_id_that_nothing_has_is_refused_in_a_line(run: Run, words: tuple[str, ...], row_id: str) -> None:
    refused = run(*(word.format(id=row_id) for word in words))
    assert refused.exit_code in {1, 2}
    assert isinstance(refused.exception, SystemExit)


def test_a_service_account_needs_a_passkey(run: Run) -> None:
    assert run("user", "create", "front", "--kind", "service").exit_code == 2
    assert run("user", "create", "front", "--kind", "service", "--passkey", "a-passkey-of-length").exit_code == 0


def test_settings_are_shown_without_secrets(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_PASSKEY", "a-passkey-of-length")
    shown = run("settings").output
    assert "SERVICE_PASSKEY" in shown
    assert "a-passkey-of-length" not in shown


def test_a_bad_environment_is_named_whole(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATIVE_THREADS", "many")
    monkeypatch.setenv("SERVICE_PASSKEY", "short")
    refused = run("settings")
    assert refused.exit_code == 1
    assert "NATIVE_THREADS" in refused.output
    assert "SERVICE_PASSKEY" in refused.output


def test_a_database_that_is_away_is_said_in_a_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody:secret@127.0.0.1:1/none")
    refused = run("user", "show", "1")
    assert refused.exit_code == 1
    assert "cannot be reached" in refused.output
    assert "secret" not in refused.output
