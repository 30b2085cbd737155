"""The status and statistics routes in the shapes that clients read (wire reference 2.8)."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from redis import Redis

from app.domain.redis_keys import QUEUE_FIGURES, QUEUE_REFRESH_REST
from app.domain.text_request import parse_text_request
from app.services.refresh_queue import measure_speeds, refresh_queue
from app.services.verify_generation import verify_generation
from tests.app.api.conftest import Call
from tests.app.services.conftest import World

TEXT: dict[str, Any] = {
    "prompt_jobs": True,
    "chat_jobs": False,
    "models": ["koboldcpp/Demo-8B", "m"],
    "name": "Box One",
}


def ask_text(world: World, *models: str, n: int = 1) -> None:
    """Let text requests wait."""
    wanted = parse_text_request({"prompt": "Once", "models": [*models], "params": {"n": n, "max_length": 100}})
    world.submit_text(world.requester_key, wanted)


def test_a_heartbeat_has_a_version_and_says_that_the_database_answers(get: Call) -> None:
    beat = get("/status/heartbeat")
    assert set(beat) == {"message", "version", "queue", "threads", "active_count", "db_connection"}
    assert (beat["message"], beat["db_connection"], type(beat["version"])) == ("OK", True, str)
    assert all(type(beat[key]) is int for key in ("queue", "threads", "active_count"))


def test_performance_has_every_figure_and_zeros_for_what_is_not_text(world: World, get: Call, redis: Redis) -> None:
    world.pop(**TEXT)
    ask_text(world, "koboldcpp/Demo-8B", n=3)
    refresh_queue(world.runtime)
    figures = get("/status/performance")
    assert figures == {
        "queued_requests": 0,
        "queued_text_requests": 3,
        "queued_megapixelsteps": 0,
        "queued_tokens": 300.0,
        "queued_forms": 0,
        "worker_count": 0,
        "thread_count": 0,
        "interrogator_count": 0,
        "interrogator_thread_count": 0,
        "text_worker_count": 2,
        "text_thread_count": 4,
        "past_minute_megapixelsteps": 0,
        "past_minute_tokens": 0,
    }
    assert type(figures["queued_text_requests"]) is type(figures["past_minute_tokens"]) is int
    assert type(figures["queued_tokens"]) is float


def test_the_queue_is_told_also_while_nobody_counts_it(world: World, get: Call, redis: Redis) -> None:
    ask_text(world, "koboldcpp/Demo-8B", n=2)
    redis.delete(QUEUE_FIGURES, QUEUE_REFRESH_REST)
    assert get("/status/performance")["queued_text_requests"] == 2


def test_a_model_shows_threads_speed_and_what_waits_for_it(world: World, get: Call, redis: Redis) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    world.pop(**TEXT)
    world.execute(
        "INSERT INTO worker_speeds (worker_id, model, tokens_per_second, samples)"
        " SELECT id, 'koboldcpp/Demo-8B', 12.5, 3 FROM workers WHERE name = 'Box One'"
    )
    ask_text(world, "koboldcpp/Demo-8B", "m")
    refresh_queue(world.runtime)
    models = {model["name"]: model for model in get("/status/models?type=text")}
    assert models["koboldcpp/Demo-8B"] == {
        "name": "koboldcpp/Demo-8B",
        "type": "text",
        "count": 2,
        "performance": 12.5,
        "queued": 50.0,
        "jobs": 0.0,
        "eta": 2,
    }
    assert (models["m"]["count"], models["m"]["eta"], type(models["m"]["eta"])) == (2, 10_000, int)
    assert get("/status/models/koboldcpp/Demo-8B") == [models["koboldcpp/Demo-8B"]]


def test_a_model_that_is_asked_for_and_not_served_is_shown(world: World, get: Call, redis: Redis) -> None:
    ask_text(world, "nobody-serves-8B", n=2)
    refresh_queue(world.runtime)
    (shown,) = get("/status/models?type=text")
    assert (shown["name"], shown["count"], shown["queued"], shown["jobs"]) == ("nobody-serves-8B", 0, 200.0, 2.0)
    assert get("/status/models/never-heard-of")[0]["count"] == 0


def test_models_of_chat_alone_are_none_that_text_requests_may_name(get: Call, worker_id: str) -> None:
    assert get("/status/models?type=text") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("?type=image", []),
        ("?type=text", ["koboldcpp/Demo-8B", "m"]),
        ("?type=text&min_count=3", []),
        ("?type=text&max_count=1", []),
        ("?type=text&min_count=2&max_count=2", ["koboldcpp/Demo-8B", "m"]),
        ("?type=text&model_state=known", []),
        ("?type=text&model_state=custom", ["koboldcpp/Demo-8B", "m"]),
    ],
)
def test_models_are_chosen_by_type_count_and_state(world: World, get: Call, query: str, expected: list[str]) -> None:
    world.pop(**TEXT)
    assert [model["name"] for model in get(f"/status/models{query}")] == expected


@pytest.mark.parametrize("query", ["min_count=-1", "max_count=many", "model_state=odd", "type=robot"])
def test_an_argument_that_cannot_be_is_named(client: FlaskClient, query: str) -> None:
    answer = client.get(f"/api/v2/status/models?{query}")
    assert answer.status_code == 400
    assert set(answer.get_json()["errors"]) == {query.partition("=")[0]}


def test_a_moderator_sets_modes_and_hears_which(client: FlaskClient, get: Call, moderator_key: str) -> None:
    answer = client.put("/api/v2/status/modes", headers={"apikey": moderator_key}, json={"maintenance": True})
    assert (answer.status_code, answer.json) == (200, {"maintenance_mode": True})
    assert get("/status/modes") == {"maintenance_mode": True, "invite_only_mode": False}
    assert get("/status/modes", moderator_key)["raid_mode"] is False


def test_who_may_not_set_modes(world: World, refused: Call, moderator_key: str) -> None:
    assert refused("PUT", "/status/modes", world.requester_key, {"raid": True}) == (403, "NotModerator")
    assert refused("PUT", "/status/modes", moderator_key, {}) == (400, "NoHordeModSelected")
    assert refused("PUT", "/status/modes", moderator_key, {"raid": 1}) == (400, None)


def test_the_statistics_have_every_span(get: Call) -> None:
    nothing = {"requests": 0, "tokens": 0}
    assert get("/stats/text/totals") == dict.fromkeys(("minute", "hour", "day", "month", "total"), nothing)
    assert get("/stats/text/models") == {"day": {}, "month": {}, "total": {}}


def test_speeds_measured_are_the_models_performance(world: World, get: Call) -> None:
    _, generation_id = world.leased()
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    assert measure_speeds(world.runtime) == 1


def test_a_page_of_any_origin_reads_every_answer(client: FlaskClient) -> None:
    def origin(answer: Any) -> tuple[int, str | None]:
        return answer.status_code, answer.headers.get("Access-Control-Allow-Origin")

    assert origin(client.get("/api/v2/status/heartbeat")) == (200, "*")
    assert origin(client.get("/api/v2/no/such/route")) == (404, "*")
    assert origin(client.post("/api/v2/status/heartbeat")) == (405, "*")
    assert origin(client.post("/api/v2/generate/text/async", json={})) == (400, "*")
    assert origin(client.get("/api/v2/find_user")) == (401, "*")
    assert origin(client.head("/api/v2/status/heartbeat")) == (200, "*")


@pytest.mark.parametrize("path", ["/api/v2/generate/text/async", "/v2/workers/x", "/nowhere"])
def test_a_browsers_preflight_is_answered_on_every_path(client: FlaskClient, path: str) -> None:
    answer = client.options(path)
    assert answer.status_code == 204
    allowed = answer.headers["Access-Control-Allow-Headers"].lower()
    assert all(name in allowed for name in ("apikey", "client-agent", "client_agent", "content-type"))


@pytest.mark.parametrize("spelling", ["apikey", "Apikey", "APIKEY"])
def test_the_key_is_read_in_any_spelling_of_its_header(world: World, client: FlaskClient, spelling: str) -> None:
    headers = {spelling: world.owner_key, "Client-Agent": "KoboldAiLite:17", "client_agent": "a:b:c"}
    assert client.get("/api/v2/find_user", headers=headers).get_json()["id"] == world.owner_id


def test_a_slash_too_many_is_no_route(client: FlaskClient) -> None:
    assert client.get("/api/v2/workers/").status_code == 404
