"""`GET /limits`: what a key may do right now."""

from typing import Any

from flask.testing import FlaskClient

from app.adapters.database import STATEMENTS
from app.domain.pricing import KUDOS
from app.domain.shared_key_terms import parse_shared_key
from app.domain.system_accounts import ANONYMOUS_KEY
from app.services.accounts import create_key, set_concurrency
from app.services.shared_keys import SharedKeys
from tests.app.api.conftest import Call
from tests.app.services.conftest import World


def rate(limits: dict[str, Any], route: str, seconds: int, by: str) -> dict[str, Any]:
    """The one limit of a route with this window."""
    (found,) = [
        each for each in limits["rates"] if (each["route"], each["seconds"], each["by"]) == (route, seconds, by)
    ]
    return dict(found)


def test_kudos_and_what_is_held_and_waits_are_told(world: World, get: Call) -> None:
    before = get("/limits", world.requester_key)
    assert (before["username"], before["kudos"], before["reserved"]) == (f"ann#{world.requester_id}", 1014.0, 0.0)
    assert before["concurrency"] == {"in_use": 0, "max": 30}
    world.ask(max_tokens=1024)
    after = get("/limits", world.requester_key)
    assert after["reserved"] > 0
    assert after["kudos"] == 1014.0 - after["reserved"]
    assert after["concurrency"] == {"in_use": 1, "max": 30}


def test_a_limit_of_its_own_is_the_accounts_concurrency(world: World, get: Call) -> None:
    with world.runtime.database.transaction() as transaction:
        set_concurrency(transaction, world.requester_id, 7)
    assert get("/limits", world.requester_key)["concurrency"]["max"] == 7


def test_a_shared_key_tells_its_own_terms(world: World, get: Call) -> None:
    terms = parse_shared_key({"name": "for my mother", "kudos": 50, "max_text_tokens": 200, "expiry": 3})
    shared = SharedKeys(world.runtime).create(world.requester_key, terms)["id"]
    limits = get("/limits", shared)
    key = limits["key"]
    assert (key["name"], key["shared"], key["max_tokens"]) == ("for my mother", True, 200)
    assert (key["kudos_limit"], key["kudos_left"]) == (50.0, 50.0)
    assert key["expiry"].endswith(" GMT")
    assert limits["default_max_tokens"] == 200


def test_a_key_with_a_limit_tells_what_is_left_of_it(world: World, get: Call) -> None:
    with world.runtime.database.transaction() as transaction:
        _, key = create_key(transaction, world.requester_id, "cron", kudos_limit=5 * KUDOS)
    told = get("/limits", key)["key"]
    assert (told["shared"], told["kudos_limit"], told["kudos_left"], told["expiry"]) == (False, 5.0, 5.0, None)


def test_the_rates_tell_what_is_left_without_counting(world: World, client: FlaskClient, get: Call) -> None:
    submit = {"model": "m", "messages": [{"role": "user", "content": "Hi."}], "dry_run": True}
    route = "POST /generate/chat/async"
    before = get("/limits", world.requester_key)
    assert rate(before, route, 60, "address")["remaining"] == 600
    for _ in range(3):
        client.post("/api/v2/generate/chat/async", json=submit, headers={"apikey": world.requester_key})
    for _ in range(2):
        after = get("/limits", world.requester_key)
    assert rate(after, route, 60, "address")["remaining"] == 597
    assert rate(after, "POST /kudos/transfer", 3600, "key")["remaining"] == 90
    assert rate(after, "POST /reports", 3600, "key")["reset_at"] % 3600 == 0


def test_limits_by_key_are_the_keys_own(world: World, client: FlaskClient, get: Call) -> None:
    body = {"username": f"bob#{world.owner_id}", "amount": 1}
    client.post("/api/v2/kudos/transfer", json=body, headers={"apikey": world.requester_key})
    route = "POST /kudos/transfer"
    assert rate(get("/limits", world.requester_key), route, 3600, "key")["remaining"] == 89
    assert rate(get("/limits", world.owner_key), route, 3600, "key")["remaining"] == 90


def test_of_the_anonymous_account_no_use_is_told(world: World, get: Call) -> None:
    limits = get("/limits", ANONYMOUS_KEY)
    assert limits["concurrency"] == {"in_use": None, "max": 500}
    assert rate(limits, "POST /generate/chat/async", 1, "key")["calls"] == 60


def test_it_takes_two_statements(world: World, get: Call) -> None:
    before = STATEMENTS._value.get()
    get("/limits", world.requester_key)
    assert STATEMENTS._value.get() - before == 2


def test_a_key_is_needed(world: World, refused: Call) -> None:
    del world
    assert refused("GET", "/limits") == (400, "BadRequest")
    assert refused("GET", "/limits", "no-such-key") == (401, "InvalidAPIKey")
