"""`/reports` as reporters and moderators call it."""

from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from app.domain.system_accounts import ANONYMOUS_KEY, HORDE_ID
from app.services.reports import close_report
from tests.app.api.conftest import Call
from tests.app.services.conftest import World


def report(kind: str, target: object, reason: str = "It answers in rhymes.") -> dict[str, Any]:
    return {"kind": kind, "target": str(target), "reason": reason}


@pytest.fixture
def made(client: FlaskClient) -> Call:
    """Make a report that is taken: its number."""

    def make(key: str, kind: str, target: object) -> int:
        answer = client.post("/api/v2/reports", json=report(kind, target), headers={"apikey": key})
        assert answer.status_code == 201, answer.text
        return int((answer.json or {})["id"])

    return make


def test_a_worker_a_requester_and_a_request_can_be_reported(
    world: World, made: Call, get: Call, worker_id: str, moderator_key: str
) -> None:
    request_id, generation_id = world.leased()
    about_worker = made(world.requester_key, "worker", worker_id)
    about_requester = made(world.owner_key, "requester", f"ann#{world.requester_id}")
    about_job = made(world.owner_key, "request", generation_id)
    newest, middle, oldest = get("/reports", moderator_key)
    ann, bob = f"ann#{world.requester_id}", f"bob#{world.owner_id}"
    assert [each["id"] for each in (newest, middle, oldest)] == [about_job, about_requester, about_worker]
    assert (oldest["about"], oldest["worker"], oldest["worker_id"]) == (bob, "box", worker_id)
    assert (middle["about"], middle["reporter"], middle["reason"]) == (ann, bob, "It answers in rhymes.")
    assert (newest["about"], newest["request_id"]) == (ann, str(request_id))


def test_a_request_and_its_job_are_the_same_target(world: World, made: Call, refused: Call) -> None:
    request_id, generation_id = world.leased()
    made(world.owner_key, "request", generation_id)
    assert refused("POST", "/reports", world.owner_key, report("request", request_id)) == (409, "ReportAlreadyOpen")


def test_one_report_of_a_target_is_open_at_a_time(world: World, made: Call, refused: Call, worker_id: str) -> None:
    number = made(world.requester_key, "worker", worker_id)
    again = report("worker", worker_id.upper())
    assert refused("POST", "/reports", world.requester_key, again) == (409, "ReportAlreadyOpen")
    _, another = world.account("carl")
    made(another, "worker", worker_id)
    with world.runtime.database.transaction() as transaction:
        close_report(transaction, number, "talked to its owner")
    made(world.requester_key, "worker", worker_id)


def test_moderators_choose_by_state(world: World, made: Call, get: Call, worker_id: str, moderator_key: str) -> None:
    number = made(world.requester_key, "worker", worker_id)
    with world.runtime.database.transaction() as transaction:
        close_report(transaction, number, "talked to its owner")
    assert get("/reports", moderator_key) == []
    (closed,) = get("/reports?state=closed", moderator_key)
    assert (closed["note"], closed["closed_at"][-4:]) == ("talked to its owner", " GMT")
    assert len(get("/reports?state=all", moderator_key)) == 1
    assert get("/reports?state=all&page=2", moderator_key) == []


def test_a_moderator_closes_a_report_once(
    world: World, client: FlaskClient, made: Call, refused: Call, worker_id: str, moderator_key: str
) -> None:
    path = f"/reports/{made(world.requester_key, 'worker', worker_id)}"

    def close(note: str | None) -> dict[str, Any]:
        answer = client.patch(f"/api/v2{path}", json={"note": note}, headers={"apikey": moderator_key})
        assert answer.status_code == 200, answer.text
        return dict(answer.json or {})

    closed = close("paused")
    assert (closed["note"], closed["worker"]) == ("paused", "box")
    assert close(None) == closed
    assert refused("PATCH", path, world.requester_key, {}) == (403, "NotModerator")
    assert refused("PATCH", "/reports/999", moderator_key, {}) == (404, "ReportNotFound")
    assert refused("PATCH", "/reports/first", moderator_key, {}) == (404, "ReportNotFound")


@pytest.mark.parametrize(
    ("kind", "target", "code"),
    [
        ("worker", uuid4(), "WorkerNotFound"),
        ("worker", "box", "WorkerNotFound"),
        ("requester", 999_999, "UserNotFound"),
        ("requester", "carl", "UserNotFound"),
        ("requester", HORDE_ID, "UserNotFound"),
        ("request", uuid4(), "RequestNotFound"),
        ("request", "1", "RequestNotFound"),
    ],
)
def test_who_is_not_there_cannot_be_reported(world: World, refused: Call, kind: str, target: object, code: str) -> None:
    assert refused("POST", "/reports", world.requester_key, report(kind, target)) == (404, code)


def test_nobody_reports_itself_or_without_an_account(world: World, refused: Call, worker_id: str) -> None:
    own = report("worker", worker_id)
    assert refused("POST", "/reports", world.owner_key, own) == (400, "BadRequest")
    assert refused("POST", "/reports", ANONYMOUS_KEY, own) == (403, "AnonForbiddenReport")
    assert refused("POST", "/reports", None, own) == (400, "BadRequest")
    assert refused("POST", "/reports", "no-such-key", own) == (401, "InvalidAPIKey")


@pytest.mark.parametrize("change", [{"reason": ""}, {"reason": "x" * 1001}, {"kind": "weather"}, {"target": 5}])
def test_a_body_that_cannot_be_used_is_refused(world: World, refused: Call, change: dict[str, Any]) -> None:
    status, _ = refused("POST", "/reports", world.requester_key, report("worker", uuid4()) | change)
    assert status == 400


def test_only_moderators_read_reports(world: World, refused: Call) -> None:
    assert refused("GET", "/reports", world.requester_key) == (403, "NotModerator")


def test_reports_are_limited_by_key(world: World, client: FlaskClient) -> None:
    def send(key: str) -> int:
        return client.post("/api/v2/reports", json=report("worker", uuid4()), headers={"apikey": key}).status_code

    assert {send(world.requester_key) for _ in range(20)} == {404}
    assert send(world.requester_key) == 429
    assert send(world.owner_key) == 404
