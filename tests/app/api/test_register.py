"""The register page when too many accounts are asked for, or from where none may be."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.domain.rate_limits import spoken
from app.factory import create_app
from app.models.account import AccountKind
from app.services.accounts import create_user
from app.services.bans import ban_network
from app.services.passkeys import set_passkey
from config.settings import Settings
from tests.app.services.conftest import World

PASSKEY = "a-passkey-of-the-front"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Limits small enough to reach."""
    return settings.model_copy(update={"rate_register_per_hour": 3, "rate_register_per_day": 4})


@pytest.fixture
def client(world: World) -> Iterator[FlaskClient]:
    """The native API behind a front that vouches for its clients."""
    with world.runtime.database.transaction() as transaction:
        set_passkey(transaction, create_user(transaction, "front", AccountKind.SERVICE), PASSKEY)
    with create_app(world.runtime).test_client() as made:
        yield made


def register(client: FlaskClient, name: str, address: str) -> TestResponse:
    vouched = {"Proxied-For": address, "Proxy-Authorization": PASSKEY}
    return client.post("/register", data={"username": name}, headers=vouched)


def test_an_address_registers_so_many_accounts_an_hour_and_is_told_when_it_may_again(client: FlaskClient) -> None:
    assert [register(client, f"Ann {number}", "9.9.9.9").status_code for number in range(3)] == [200] * 3
    refused = register(client, "Ann <the fourth>", "9.9.9.9")
    wait = int(refused.headers["Retry-After"])
    assert refused.status_code == 429
    assert 1 <= wait <= 3600
    assert refused.mimetype == "text/html"
    assert f"Try again in {spoken(wait)}." in refused.text
    assert 'value="Ann &lt;the fourth&gt;"' in refused.text
    assert refused.headers["Cache-Control"] == "no-store"


def test_another_client_of_the_same_front_is_not_counted_with_it(client: FlaskClient) -> None:
    assert {register(client, "Ann", "9.9.9.9").status_code for _ in range(5)} == {200, 429}
    assert register(client, "Bob", "9.9.9.10").status_code == 200


def test_nobody_registers_from_a_banned_network(world: World, client: FlaskClient) -> None:
    with world.runtime.database.transaction() as transaction:
        ban_network(transaction, "9.9.9.0/24", "It is an open proxy", None)
    refused = register(client, "Ann", "9.9.9.9")
    assert refused.status_code == 403
    assert "It is an open proxy" in refused.text
    assert register(client, "Ann", "9.9.8.9").status_code == 200


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "1 second"), (59, "59 seconds"), (60, "1 minute"), (61, "2 minutes"), (3600, "1 hour"), (86_000, "24 hours")],
)
def test_a_wait_is_said_as_a_person_would(seconds: int, words: str) -> None:
    assert spoken(seconds) == words
