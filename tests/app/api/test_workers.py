"""The workers' routes: what everybody, owners and moderators see and may do (wire reference 2.6)."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from app.domain.errors import WorkerMaintenance
from app.domain.pricing import KUDOS
from app.domain.system_accounts import ANONYMOUS_KEY
from app.services.refresh_queue import measure_speeds
from app.services.statistics import count_generations
from app.services.verify_generation import verify_generation
from tests.app.api.conftest import Call
from tests.app.services.conftest import World

TEXT: dict[str, Any] = {"prompt_jobs": True, "chat_jobs": False, "models": ["koboldcpp/Demo-8B"], "name": "Box One"}
NOBODYS = "5d1cf6a1-0b4e-4cf1-9d64-0d8f0a4e7c11"


@pytest.fixture
def put(client: FlaskClient) -> Call:
    def edit(worker_id: str, key: str, **changes: Any) -> Any:
        answer = client.put(f"/api/v2/workers/{worker_id}", headers={"apikey": key}, json=changes)
        assert answer.status_code == 200, answer.text
        return answer.json

    return edit


def test_a_new_worker_is_shown_with_every_key_that_clients_read(world: World, get: Call) -> None:
    worker_id = str(world.pop(**TEXT).worker_id)
    shown = get(f"/workers/{worker_id}")
    assert shown == {
        "type": "text",
        "name": "Box One",
        "id": worker_id,
        "online": True,
        "requests_fulfilled": 0,
        "uncompleted_jobs": 0,
        "kudos_rewards": 0.0,
        "kudos_details": {"generated": 0.0, "uptime": 0},
        "performance": "0.0 tokens per second",
        "threads": 2,
        "uptime": 0,
        "maintenance_mode": False,
        "nsfw": True,
        "trusted": False,
        "flagged": False,
        "models": ["koboldcpp/Demo-8B"],
        "max_length": 1024,
        "max_context_length": 8192,
        "bridge_agent": "unknown:0:unknown",
        "team": {"name": None, "id": None},
        "messages": [],
    }
    whole = ("requests_fulfilled", "uncompleted_jobs", "threads", "uptime", "max_length", "max_context_length")
    assert all(type(shown[key]) is int for key in whole)


def test_a_worker_that_served_shows_what_it_did(world: World, get: Call, worker_id: str) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    _, failed = world.leased()
    world.replies.fault(world.owner_key, failed, "backend_error")
    world.execute("UPDATE workers SET uptime_seconds = 90.7, uptime_rewards = 25500 WHERE id = :id", id=worker_id)
    world.execute("UPDATE generations SET ended_at = ended_at - interval '10 seconds'")
    world.execute(
        "UPDATE generations SET popped_at = submitted_at - interval '1 second' WHERE submitted_at > popped_at"
    )
    measure_speeds(world.runtime)
    count_generations(world.runtime)
    reward = int(str(world.execute("SELECT reward FROM generations WHERE id = :id", id=generation_id)[0][0]))
    shown = get(f"/workers/{worker_id}")
    assert (shown["requests_fulfilled"], shown["uncompleted_jobs"], shown["uptime"]) == (1, 1, 90)
    assert shown["kudos_details"] == {"generated": reward / KUDOS, "uptime": 26}
    assert shown["kudos_rewards"] == reward / KUDOS + 25.5
    assert shown["performance"] == "20.0 tokens per second"


def test_a_chat_workers_model_is_none_that_text_requests_may_name(get: Call, worker_id: str) -> None:
    shown = get(f"/workers/{worker_id}")
    assert (shown["models"], shown["chat_model"]) == ([], "m")


def test_the_list_holds_who_is_online_by_type_and_name_in_any_case(world: World, get: Call) -> None:
    world.pop(name="Away")
    world.pop(name="Here")
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 hour' WHERE name = 'Away'")
    assert [worker["name"] for worker in get("/workers")] == ["Here", "box"]
    assert [worker["name"] for worker in get("/workers?type=text&name=hERE")] == ["Here"]
    assert get("/workers?name=her") == []
    assert get("/workers?type=image") == get("/workers?type=interrogation") == []


def test_a_worker_that_went_offline_is_still_read_by_its_id_and_name(world: World, get: Call, worker_id: str) -> None:
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 hour'")
    assert get(f"/workers/{worker_id}")["online"] is False
    assert get("/workers/name/box")["id"] == worker_id


@pytest.mark.parametrize("path", [NOBODYS, "no-uuid", "name/nobody", "name/%00"])
def test_a_worker_that_is_not_there_is_404(refused: Call, path: str) -> None:
    assert refused("GET", f"/workers/{path}") == (404, "WorkerNotFound")


def test_a_type_that_does_not_exist_is_named_without_a_code(client: FlaskClient) -> None:
    answer = client.get("/api/v2/workers?type=robot")
    assert answer.status_code == 400
    assert set(answer.get_json()) == {"errors", "message"}
    assert "type" in answer.get_json()["errors"]


def test_its_owner_is_shown_to_itself_and_to_moderators(
    world: World, get: Call, worker_id: str, moderator_key: str
) -> None:
    owner = f"bob#{world.owner_id}"
    assert "owner" not in get(f"/workers/{worker_id}")
    assert "owner" not in get(f"/workers/{worker_id}", world.requester_key)
    assert get(f"/workers/{worker_id}", world.owner_key)["owner"] == owner
    assert "paused" not in get(f"/workers/{worker_id}", world.owner_key)
    assert get(f"/workers/{worker_id}", moderator_key)["paused"] is False


def test_an_edit_answers_with_what_it_changed_and_nothing_else(
    world: World, get: Call, put: Call, worker_id: str
) -> None:
    assert put(worker_id, world.owner_key, maintenance=False, info="Two cards.") == {
        "maintenance": False,
        "info": "Two cards.",
    }
    assert put(worker_id, world.owner_key, name="Box Two", team="", unknown=1) == {"name": "Box Two"}
    shown = get(f"/workers/{worker_id}")
    assert (shown["name"], shown["info"], shown["maintenance_mode"]) == ("Box Two", "Two cards.", False)
    put(worker_id, world.owner_key, info="")
    assert "info" not in get(f"/workers/{worker_id}")


def test_a_worker_in_maintenance_hears_why_until_its_owner_ends_it(world: World, put: Call, worker_id: str) -> None:
    put(worker_id, world.owner_key, maintenance=True, maintenance_msg="New card.")
    with pytest.raises(WorkerMaintenance, match="New card"):
        world.pop()
    world.execute("UPDATE workers SET aborts = 21, aborts_since = now()")
    put(worker_id, world.owner_key, maintenance=False)
    assert world.pop().id is None
    assert world.execute("SELECT aborts FROM workers") == [(0,)]


def test_a_paused_worker_gets_no_jobs_and_is_not_told(
    world: World, get: Call, put: Call, worker_id: str, moderator_key: str
) -> None:
    world.ask()
    assert put(worker_id, moderator_key, paused=True) == {"paused": True}
    assert world.pop().id is None
    assert "paused" not in get(f"/workers/{worker_id}", world.owner_key)
    put(worker_id, moderator_key, paused=False)
    assert world.pop().id is not None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (400, "NoWorkerModSelected")),
        ({"maintenance_msg": "alone"}, (400, "NoWorkerModSelected")),
        ({"name": "four"}, (400, "TooLongWorkerName")),
        ({"name": "x" * 101}, (400, "TooLongWorkerName")),
        ({"name": " padded"}, (400, "TooLongWorkerName")),
        ({"name": "The other"}, (400, "WorkerNameAlreadyExists")),
        ({"paused": True}, (403, "NotModerator")),
        ({"maintenance": "yes"}, (400, None)),
        ({"info": "x" * 1001}, (400, None)),
    ],
)
def test_an_edit_that_cannot_be_is_refused(
    world: World, refused: Call, worker_id: str, changes: dict[str, Any], expected: tuple[int, str | None]
) -> None:
    world.pop(name="The other")
    assert refused("PUT", f"/workers/{worker_id}", world.owner_key, changes) == expected


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_only_its_owner_and_moderators_touch_a_worker(world: World, refused: Call, worker_id: str, method: str) -> None:
    path, body = f"/workers/{worker_id}", {"info": "mine"}
    assert refused(method, path, world.requester_key, body) == (403, "NotOwner")
    assert refused(method, path, ANONYMOUS_KEY, body) == (403, "NotOwner")
    assert refused(method, path, "unknown", body) == (401, "InvalidAPIKey")
    assert refused(method, path, None, body)[0] == 400
    assert refused(method, f"/workers/{NOBODYS}", world.owner_key, body) == (404, "WorkerNotFound")


def test_a_deleted_worker_is_gone_and_its_name_is_free(
    world: World, client: FlaskClient, get: Call, refused: Call, worker_id: str
) -> None:
    answer = client.delete(f"/api/v2/workers/{worker_id}", headers={"apikey": world.owner_key})
    assert answer.json == {"deleted_id": worker_id, "deleted_name": "box"}
    assert refused("GET", f"/workers/{worker_id}") == (404, "WorkerNotFound")
    assert get("/find_user", world.owner_key)["worker_ids"] == []
    assert get("/workers") == []
    assert str(world.pop().worker_id) != worker_id


def test_a_worker_with_a_job_is_locked_and_keeps_it(world: World, refused: Call, worker_id: str) -> None:
    _, generation_id = world.leased()
    assert refused("DELETE", f"/workers/{worker_id}", world.owner_key) == (423, "Locked")
    world.deliver(generation_id)
    assert refused("DELETE", f"/workers/{worker_id}", world.owner_key) == (423, "Locked")


def test_time_online_is_counted_from_check_in_to_check_in_and_not_while_away(world: World, get: Call) -> None:
    worker_id = str(world.pop(**TEXT).worker_id)
    world.execute("UPDATE workers SET last_seen_at = now() - interval '100 seconds' WHERE id = :id", id=worker_id)
    world.pop(**TEXT)
    assert get(f"/workers/{worker_id}")["uptime"] == 100
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1000 seconds' WHERE id = :id", id=worker_id)
    world.pop(**TEXT)
    assert get(f"/workers/{worker_id}")["uptime"] == 100
