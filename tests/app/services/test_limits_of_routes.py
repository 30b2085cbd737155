"""Rate limits as a caller meets them, with the limits that the horde is shipped with."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.factory import create_app
from app.models.account import AccountKind
from app.services import accounts, passkeys
from app.services.runtime import Runtime

PASSKEY = "a-passkey-of-the-front"


@pytest.fixture
def client(runtime: Runtime) -> Iterator[FlaskClient]:
    with runtime.database.transaction() as transaction:
        service = accounts.create_user(transaction, "front", AccountKind.SERVICE)
        passkeys.set_passkey(transaction, service, PASSKEY)
    with create_app(runtime).test_client() as made:
        yield made


def ask(client: FlaskClient, address: str = "9.9.9.9", **headers: str) -> TestResponse:
    return client.get("/api/v2/sharedkeys/none", environ_base={"REMOTE_ADDR": address}, headers=headers)


def test_every_answer_tells_what_is_left(client: FlaskClient) -> None:
    first, second = ask(client), ask(client)
    assert first.headers["X-RateLimit-Limit"] == "180"
    left = [int(answer.headers["X-RateLimit-Remaining"]) for answer in (first, second)]
    assert left == [179, 178]


def test_who_calls_too_often_is_told_until_when(client: FlaskClient) -> None:
    make = {"headers": {"apikey": "0000000000"}, "json": {}, "environ_base": {"REMOTE_ADDR": "9.9.9.9"}}
    answers = [client.put("/api/v2/sharedkeys", **make) for _ in range(11)]
    refused = [answer for answer in answers if answer.status_code == 429]
    # A window may have ended between the calls.
    assert 1 <= len(refused) <= 6
    assert (refused[0].json or {})["rc"] == "rate_limit_exceeded"
    assert 1 <= int(refused[0].headers["Retry-After"]) <= 60
    assert refused[0].headers["X-RateLimit-Remaining"] == "0"


def test_an_address_that_a_service_vouches_for_is_the_one_that_counts(client: FlaskClient) -> None:
    vouched = {"Proxied-For": "8.8.8.8", "Proxy-Authorization": PASSKEY}
    ask(client, **vouched)
    assert ask(client, "7.7.7.7", **vouched).headers["X-RateLimit-Remaining"] == "178"
    assert ask(client, "8.8.8.8").headers["X-RateLimit-Remaining"] == "177"
    assert ask(client, "7.7.7.7").headers["X-RateLimit-Remaining"] == "179"


@pytest.mark.parametrize("passkey", ["", "a-passkey-of-nobody---"])
def test_nobody_else_may_vouch(client: FlaskClient, passkey: str) -> None:
    answer = ask(client, **{"Proxied-For": "8.8.8.8", "Proxy-Authorization": passkey})
    assert (answer.status_code, (answer.json or {})["rc"]) == (400, "OnlyServiceAccountProxy")


def test_an_ordinary_account_with_a_passkey_may_not_vouch(client: FlaskClient, runtime: Runtime) -> None:
    with runtime.database.transaction() as transaction:
        ordinary = accounts.create_user(transaction, "ann")
        passkeys.set_passkey(transaction, ordinary, "a-passkey-of-ann------")
    answer = ask(client, **{"Proxied-For": "8.8.8.8", "Proxy-Authorization": "a-passkey-of-ann------"})
    assert (answer.json or {})["rc"] == "OnlyServiceAccountProxy"


def test_a_probe_is_never_limited(client: FlaskClient) -> None:
    assert "X-RateLimit-Limit" not in client.get("/healthz").headers
