"""The operator's commands for accounts, keys and kudos, over a real database."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import main

Run = Callable[..., Result]


@pytest.fixture
def run(quiet_redis: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of `horde` on this test's database."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("REDIS_URL", quiet_redis)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def answer(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def create(run: Run, name: str, *more: str) -> int:
    return int(answer(run("user", "create", name, *more, "--json"))["id"])


def test_an_operator_moves_kudos_once_for_a_repeated_command(run: Run) -> None:
    ann, bob = create(run, "ann"), create(run, "bob")
    run("kudos", "grant", ann, "100.5")
    first = answer(run("kudos", "transfer", ann, bob, "40.25", "--idempotency-key", "k", "--json"))
    again = answer(run("kudos", "transfer", ann, bob, "40.25", "--idempotency-key", "k", "--json"))
    assert first == again
    assert first["kudos"] == 74.25
    assert answer(run("user", "show", bob, "--json"))["kudos"] == 54.25
    assert run("kudos", "check").output == "every rule holds\n"


@pytest.mark.parametrize("amount", ["-1", "0", "0.001", "nan", "inf", "1e400", "many", "86.01"])
def test_an_amount_that_cannot_be_moved_is_refused_with_its_reason(run: Run, amount: str) -> None:
    ann, bob = create(run, "ann"), create(run, "bob")
    run("kudos", "grant", ann, "86")
    refused = run("kudos", "transfer", ann, bob, "--", amount)
    assert refused.exit_code == 1
    assert "Error: " in refused.output
    assert answer(run("user", "show", ann, "--json"))["kudos"] == 100.0


def test_a_transfer_from_or_to_nobody_is_refused(run: Run) -> None:
    ann = create(run, "ann")
    assert run("kudos", "transfer", ann, 999, "1").exit_code == 1
    assert run("kudos", "transfer", 999, ann, "1").exit_code == 1


def test_an_account_can_be_named_as_it_is_on_the_wire_and_never_by_another_ones_name(run: Run) -> None:
    ann, bob = create(run, "ann"), create(run, "bob")
    assert answer(run("kudos", "grant", f"ann#{ann}", "100", "--json"))["kudos"] == 114.0
    assert answer(run("kudos", "transfer", f"ann#{ann}", f"bob#{bob}", "5", "--json"))["kudos"] == 109.0
    assert answer(run("user", "show", f"bob#{bob}", "--json"))["kudos"] == 19.0
    assert answer(run("user", "concurrency", f"bob#{bob}", 5, "--json"))["concurrency"] == 5
    assert run("key", "create", f"bob#{bob}").exit_code == 0
    refused = run("kudos", "grant", f"bob#{ann}", "100")
    assert refused.exit_code == 1
    assert f"Account {ann} is ann#{ann}, not bob#{ann}." in refused.output


def test_a_role_and_a_concurrency_are_given_and_taken(run: Run) -> None:
    ann = create(run, "ann")
    assert answer(run("user", "role", ann, "trusted", "--json"))["roles"] == "trusted"
    assert answer(run("user", "concurrency", ann, 5, "--json"))["concurrency"] == 5
    shown = answer(run("user", "show", ann, "--json"))
    assert (shown["roles"], shown["concurrency"], shown["escrow"]) == ("trusted", 5, 0.0)
    assert answer(run("user", "role", ann, "trusted", "--remove", "--json"))["roles"] is None
    assert answer(run("user", "concurrency", ann, "--json"))["concurrency"] is None


def test_a_key_can_have_an_end_and_a_limit_and_is_shown_once(run: Run) -> None:
    ann = create(run, "ann")
    made = answer(run("key", "create", ann, "--name", "cron", "--days", 3, "--kudos-limit", "12.5", "--json"))
    shown = run("user", "show", ann, "--json")
    assert made["api_key"] not in shown.output
    first, second = answer(shown)["keys"]
    assert (first["kudos_limit"], first["expires_at"]) == (None, None)
    assert (second["name"], second["kudos_limit"]) == ("cron", 12.5)
    assert second["expires_at"] is not None


def test_a_service_account_needs_its_passkey(run: Run) -> None:
    assert run("user", "create", "front", "--kind", "service").exit_code == 2
    assert run("user", "create", "front", "--kind", "service", "--passkey", "short").exit_code == 2
    assert create(run, "front", "--kind", "service", "--passkey", "sixteen-characters") >= 100


@pytest.mark.parametrize(
    "words",
    [
        ("key", "create", 0, "--kudos-limit", "inf"),
        ("key", "create", 0, "--kudos-limit", "1e300"),
        ("key", "create", 0, "--days", 10**9),
        ("user", "concurrency", 0, 2**40),
        ("kudos", "transfer", 0, 2**64, 1),
        ("kudos", "transfer", 100, 0, 1, "--idempotency-key", "k" * 256),
    ],
)
def test_a_number_or_key_beyond_what_can_be_kept_is_refused(run: Run, words: tuple[object, ...]) -> None:
    refused = run(*words)
    assert refused.exit_code in (1, 2)
    assert "Error: " in refused.output
