"""The list of accounts, and the keys of an account that clients read (wire reference 2.7)."""

import pytest
from flask.testing import FlaskClient

from app.domain.pricing import KUDOS
from app.services.kudos import fold_balances
from tests.app.api.conftest import Call
from tests.app.services.conftest import World


def test_an_account_has_every_key_that_clients_read_and_none_is_null(world: World, get: Call) -> None:
    shown = get(f"/users/{world.requester_id}")
    assert [key for key, value in shown.items() if value is None] == []
    assert {key: type(shown[key]) for key in ("id", "worker_count", "account_age", "kudos")} == {
        "id": int,
        "worker_count": int,
        "account_age": int,
        "kudos": float,
    }
    assert shown["username"] == f"ann#{world.requester_id}"
    assert set(shown["records"]) == {"usage", "contribution", "request", "fulfillment", "style"}
    assert shown["styles"] == []


def test_the_richest_come_first_or_the_oldest(world: World, get: Call) -> None:
    rich, _ = world.account("rich", grants=5000 * KUDOS)
    fold_balances(world.runtime)
    by_kudos = [user["id"] for user in get("/users")]
    assert by_kudos[:2] == [rich, world.requester_id]
    by_age = [user["id"] for user in get("/users?sort=age")]
    assert by_age == sorted(by_age)
    assert {rich, world.requester_id, world.owner_id} <= set(by_age)
    assert "worker_ids" not in get("/users")[0]


def test_a_page_has_25_accounts_and_the_next_goes_on(world: World, get: Call) -> None:
    for number in range(30):
        world.account(f"user{number}")
    first, second = get("/users?sort=age"), get("/users?sort=age&page=2")
    assert len(first) == 25
    assert first[-1]["id"] < second[0]["id"]
    assert get("/users?page=1000") == []


@pytest.mark.parametrize("query", ["page=0", "page=1001", "page=x", "sort=name"])
def test_a_page_that_cannot_be_is_named(client: FlaskClient, query: str) -> None:
    answer = client.get(f"/api/v2/users?{query}")
    assert answer.status_code == 400
    assert set(answer.get_json()["errors"]) == {query.partition("=")[0]}


def test_deleted_accounts_and_the_hordes_own_are_on_no_page(world: World, get: Call) -> None:
    gone, _ = world.account("gone")
    world.execute("UPDATE users SET deleted = true WHERE id = :id", id=gone)
    listed = get("/users?sort=age")
    assert gone not in {user["id"] for user in listed}
    assert world.execute("SELECT count(*) FROM users WHERE kind <> 'system' AND NOT deleted") == [(len(listed),)]
