"""Messages to workers: who writes and reads them, and how pops carry them (wire reference 2.4 and 2.6)."""

from email.utils import parsedate_to_datetime
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from tests.app.api.conftest import Call
from tests.app.services.conftest import DECLARATION, World


@pytest.fixture
def send(client: FlaskClient) -> Call:
    def post(key: str, **body: Any) -> Any:
        answer = client.post("/api/v2/workers/messages", headers={"apikey": key}, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json

    return post


def pop(client: FlaskClient, world: World, **changes: Any) -> Any:
    answer = client.post("/api/v2/generate/text/pop", headers={"apikey": world.owner_key}, json=DECLARATION | changes)
    assert answer.status_code == 200, answer.text
    return answer.json


def test_pops_carry_a_message_until_it_expires(world: World, client: FlaskClient, send: Call, worker_id: str) -> None:
    sent = send(world.owner_key, worker_id=worker_id, message="Please update.", expiry=2)
    assert (sent["worker_id"], sent["message"], sent["origin"]) == (
        worker_id,
        "Please update.",
        f"bob#{world.owner_id}",
    )
    parsedate_to_datetime(sent["expiry"])
    (carried,) = pop(client, world)["messages"]
    assert carried == {key: sent[key] for key in ("id", "message", "origin", "expiry")}
    assert pop(client, world, name="another")["messages"] == []
    world.execute("UPDATE worker_messages SET expires_at = now()")
    assert pop(client, world)["messages"] == []


def test_a_moderators_message_to_all_reaches_a_worker_on_its_first_pop(
    world: World, client: FlaskClient, send: Call, moderator_key: str
) -> None:
    send(moderator_key, message="Maintenance at noon.", origin="The operators")
    (carried,) = pop(client, world, name="quite new")["messages"]
    assert (carried["message"], carried["origin"]) == ("Maintenance at noon.", "The operators")


def test_an_owner_sees_its_own_and_those_to_all(
    world: World, get: Call, send: Call, worker_id: str, moderator_key: str
) -> None:
    send(moderator_key, message="to all")
    send(world.owner_key, worker_id=worker_id, message="to mine")
    assert [each["message"] for each in get("/workers/messages", world.owner_key)] == ["to mine", "to all"]
    assert [each["message"] for each in get("/workers/messages", world.requester_key)] == ["to all"]
    assert [each["message"] for each in get("/workers/messages", moderator_key)] == ["to mine", "to all"]
    one = get(f"/workers/messages?worker_id={worker_id}", world.owner_key)
    assert [each["message"] for each in one] == ["to mine"]
    assert get(f"/workers/messages/{one[0]['id']}", world.owner_key) == one[0]


def test_who_may_write_read_and_take_back(
    world: World, client: FlaskClient, send: Call, refused: Call, worker_id: str
) -> None:
    new = {"worker_id": worker_id, "message": "hello"}
    assert refused("POST", "/workers/messages", world.requester_key, new) == (403, "NotOwner")
    assert refused("POST", "/workers/messages", world.owner_key, {"message": "all"}) == (403, "NotModerator")
    unknown = new | {"worker_id": str(uuid4())}
    assert refused("POST", "/workers/messages", world.owner_key, unknown) == (404, "WorkerNotFound")
    path = f"/workers/messages/{send(world.owner_key, **new)['id']}"
    assert refused("GET", path, world.requester_key) == (404, "MessageNotFound")
    assert refused("DELETE", path, world.requester_key) == (403, "NotOwner")
    assert client.delete(f"/api/v2{path}", headers={"apikey": world.owner_key}).json == {"message": "OK"}
    assert refused("GET", path, world.owner_key) == (404, "MessageNotFound")
    assert refused("GET", "/workers/messages/no-uuid", world.owner_key) == (404, "MessageNotFound")


@pytest.mark.parametrize("body", [{}, {"message": ""}, {"message": 1}, {"message": "m", "expiry": 0}])
def test_a_message_that_cannot_be_is_refused_by_key(world: World, client: FlaskClient, body: dict[str, Any]) -> None:
    answer = client.post("/api/v2/workers/messages", headers={"apikey": world.owner_key}, json=body)
    assert answer.status_code == 400
    assert set(answer.get_json()["errors"]) <= {"message", "expiry"}
