"""Bans, passkeys, reports, erasure and export as an operator types them."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from cli.main import main
from tests.support.services import LocalServices

Run = Callable[..., Result]
FRONT = ("user", "create", "front", "--kind", "service", "--passkey", "sixteen-characters")


@pytest.fixture
def run(services: LocalServices, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of `horde` on this test's database."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("REDIS_URL", services.redis_url)
    return lambda *words, **more: CliRunner().invoke(main, [str(word) for word in words], **more)


def answer(result: Result) -> Any:
    """What a command printed as JSON, which stands alone on standard output."""
    assert result.exit_code == 0, result.output
    return orjson.loads(result.stdout)


def execute(database_url: str, statement: str, **values: int) -> None:
    engine = create_engine(make_url(database_url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text(statement), values)
    engine.dispose()


@pytest.fixture
def ann(run: Run) -> int:
    """An account."""
    return int(answer(run("user", "create", "ann", "--json"))["id"])


def test_an_account_is_banned_listed_and_let_in_again(run: Run, ann: int) -> None:
    banned = answer(run("ban", "user", f"ann#{ann}", "--reason", "It floods", "--hours", "1.5", "--json"))
    assert (banned["banned"], banned["cancelled_requests"], banned["jobs_given_back"]) == (f"ann#{ann}", 0, 0)
    (listed,) = answer(run("ban", "list", "--json"))
    assert (listed["banned"], listed["kind"], listed["in_force"], listed["reason"]) == (
        f"ann#{ann}",
        "user",
        True,
        "It floods",
    )
    assert "It floods" in run("ban", "list").output
    shown = answer(run("user", "show", ann, "--json"))
    assert (shown["banned"], shown["ban_ends_at"]) == (True, listed["ends_at"])
    assert answer(run("unban", "user", ann, "--json")) == {"unbanned": f"ann#{ann}"}
    assert run("ban", "list").output == "none\n"
    assert answer(run("user", "show", ann, "--json"))["banned"] is False
    assert run("unban", "user", ann).exit_code == 1


def test_a_network_is_banned_listed_and_let_in_again(run: Run) -> None:
    assert answer(run("ban", "address", "192.0.2.9/24", "--json")) == {"banned": "192.0.2.0/24", "ends_at": None}
    assert [each["banned"] for each in answer(run("ban", "list", "--json"))] == ["192.0.2.0/24"]
    assert run("unban", "address", "192.0.2.0/25").exit_code == 1
    assert run("unban", "address", "192.0.2.0/24").exit_code == 0
    assert answer(run("ban", "list", "--json")) == []


@pytest.mark.parametrize(
    "words",
    [
        ("ban", "user", "nobody#999"),
        ("ban", "user", "bob#{ann}"),
        ("ban", "user", "ann"),
        ("ban", "user", "{ann}", "--hours", "0"),
        ("ban", "user", "{ann}", "--reason", "x" * 1001),
        ("ban", "address", "127.0.0.0/8"),
        ("ban", "address", "example.org"),
        ("unban", "address", "example.org"),
        ("passkey", "rotate", "{ann}"),
        ("passkey", "retire", "{ann}"),
        ("report", "show", "1"),
        ("report", "close", "1"),
        ("user", "erase", "nobody#999", "--yes"),
        ("user", "erase", "0", "--yes"),
        ("user", "export", "ann"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(run: Run, ann: int, words: tuple[str, ...]) -> None:
    refused = run(*(word.format(ann=ann) for word in words))
    assert refused.exit_code in (1, 2)
    assert "Error: " in refused.output


def test_a_ban_needs_no_redis(run: Run, ann: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    assert answer(run("ban", "user", ann, "--json"))["banned"] == f"ann#{ann}"


def test_a_passkey_is_rotated_and_the_old_one_retired(run: Run) -> None:
    front = int(answer(run(*FRONT, "--json"))["id"])
    rotated = answer(run("passkey", "rotate", f"front#{front}", "--json"))
    assert len(rotated["passkey"]) >= 32
    (listed,) = answer(run("passkey", "list", "--json"))
    assert listed["old_one_good_until"] == rotated["old_one_good_until"]
    assert rotated["passkey"] not in run("passkey", "list").output
    assert answer(run("passkey", "retire", front, "--json"))["retired"] is True
    assert answer(run("passkey", "list", "--json"))[0]["old_one_good_until"] is None
    assert run("passkey", "retire", front).exit_code == 1


def test_shared_keys_are_revoked_of_one_account_or_of_all(run: Run, ann: int, database_url: str) -> None:
    execute(
        database_url,
        "INSERT INTO api_keys (user_id, key_sha256, shared_id, name) "
        "SELECT u, 'digest ' || u || ' ' || n, gen_random_uuid(), 'shared' "
        "FROM unnest(ARRAY[0, :ann]) u, generate_series(1, 3) n",
        ann=ann,
    )
    assert run("key", "revoke-shared", input="n\n").exit_code == 1
    assert answer(run("key", "revoke-shared", "--account", f"ann#{ann}", "--yes", "--json")) == {"revoked": 3}
    assert answer(run("key", "revoke-shared", "--yes", "--json")) == {"revoked": 3}
    own = [key for key in answer(run("user", "show", ann, "--json"))["keys"] if not key["shared"]]
    assert [key["revoked_at"] for key in own] == [None]


def test_erasing_asks_first_and_can_be_repeated(run: Run, ann: int) -> None:
    asked = run("user", "erase", f"ann#{ann}", input="n\n")
    assert asked.exit_code == 1
    assert f"Erase ann#{ann} for good?" in asked.stderr
    assert answer(run("user", "show", ann, "--json"))["alias"] == f"ann#{ann}"
    assert run("user", "erase", f"ann#{ann}", input="y\n").exit_code == 0
    for _ in range(2):
        erased = answer(run("user", "erase", f"ann#{ann}", "--yes", "--json"))
        assert erased == {"erased": ann, "cancelled_requests": 0, "jobs_given_back": 0, "texts_left": 0}
    shown = answer(run("user", "show", ann, "--json"))
    assert (shown["alias"], shown["roles"]) == (f"erased#{ann}", "deleted")
    assert run("kudos", "check").output == "every rule holds\n"


def test_an_export_is_one_json_object(run: Run, ann: int) -> None:
    told = answer(run("user", "export", f"ann#{ann}"))
    assert told["account"][0]["username"] == "ann"
    assert told["kudos"] == {"balance": 14_000, "escrow": 0}
    assert [key["name"] for key in told["keys"]] == ["first"]
    assert told["requests"] == []


def test_reports_are_listed_shown_and_closed(run: Run, ann: int, database_url: str) -> None:
    execute(
        database_url,
        "INSERT INTO reports (reporter_id, kind, target, user_id, reason) "
        "VALUES (:ann, 'requester', '0', 0, 'It asks too much.')",
        ann=ann,
    )
    (listed,) = answer(run("report", "list", "--json"))
    number = listed["id"]
    assert "Anonymous#0" in run("report", "list").output
    assert "It asks too much." in run("report", "show", number).output
    closed = answer(run("report", "close", number, "--note", "That is what it is for.", "--json"))
    assert closed["note"] == "That is what it is for."
    assert closed["closed_at"] is not None
    assert run("report", "list").output == "none\n"
    assert [each["id"] for each in answer(run("report", "list", "--state", "all", "--json"))] == [number]
