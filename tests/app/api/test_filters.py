"""The filters' routes, for moderators (wire reference 2.8)."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.app.api.conftest import Call
from tests.app.services.conftest import World


@pytest.fixture
def call(client: FlaskClient, moderator_key: str) -> Call:
    def send(method: str, path: str = "", body: Any = None, expected: int = 200) -> Any:
        answer = client.open(f"/api/v2/filters{path}", method=method, headers={"apikey": moderator_key}, json=body)
        assert answer.status_code == expected, answer.text
        return answer.json

    return send


def test_a_filter_is_added_read_changed_and_removed(call: Call) -> None:
    added = call("PUT", body={"regex": "secret plans?", "description": "why"}, expected=201)
    path = f"/{added['id']}"
    assert added == {
        "id": added["id"],
        "regex": "secret plans?",
        "filter_type": 10,
        "kind": "block",
        "replacement": None,
        "description": "why",
    }
    assert call("GET") == [added]
    assert call("GET", path) == added
    changed = call("PATCH", path, {"filter_type": 11, "replacement": "plans"})
    assert (changed["kind"], changed["replacement"], changed["regex"]) == ("replace", "plans", "secret plans?")
    assert call("PATCH", path, {"filter_type": 10})["replacement"] is None
    assert call("DELETE", path) == {"message": "OK"}
    assert call("GET", path, expected=404)["rc"] == "FilterNotFound"


def test_a_text_is_held_against_all_of_them(call: Call) -> None:
    call("PUT", body={"regex": "first"}, expected=201)
    call("PUT", body={"regex": "second", "filter_type": 11, "replacement": "2nd"}, expected=201)
    assert call("POST", body={"prompt": "the FIRST and the second"}) == {"suspicion": 1, "matches": ["first", "second"]}
    assert call("POST", body={"prompt": "neither"}) == {"suspicion": 0, "matches": []}
    assert call("GET", "/regex") == [
        {"filter_type": 10, "regex": "(?:first)"},
        {"filter_type": 11, "regex": "(?:second)"},
    ]
    assert [each["regex"] for each in call("GET", "?filter_type=11")] == ["second"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "regex"),
        ({"regex": ""}, "regex"),
        ({"regex": "a", "filter_type": 20}, "filter_type"),
        ({"regex": "(?=look)"}, "pattern"),
        ({"regex": "a", "replacement": "b"}, "replacement"),
        ({"regex": "a", "filter_type": 11}, "replacement"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_by_key(call: Call, body: dict[str, Any], named: str) -> None:
    answer = call("PUT", body=body, expected=400)
    assert named in answer.get("errors", {}) or named == answer["param"]


def test_a_change_of_nothing_is_refused(call: Call) -> None:
    added = call("PUT", body={"regex": "a"}, expected=201)
    assert call("PATCH", f"/{added['id']}", {}, expected=400)["rc"] == "NoFilterModSelected"


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_only_moderators_see_and_write_filters(world: World, refused: Call, method: str) -> None:
    body = None if method == "GET" else {"regex": "a", "prompt": "a"}
    assert refused(method, "/filters", world.owner_key, body) == (403, "NotModerator")
    assert refused(method, "/filters", "unknown", body) == (401, "InvalidAPIKey")
    assert refused(method, "/filters", None, body)[0] == 400
