"""Rows 9 and 10 of the compatibility checklist: what clients with strict models must find in every answer."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.horde import KEYS
from tests.support.services import wait_until
from tests.support.text_bridge import TextBridge

WHOLE = {
    "wait_time", "queue_position", "finished", "processing", "restarted", "waiting", "eta", "jobs", "count", "uptime",
    "account_age", "requests_fulfilled", "uncompleted_jobs", "threads", "max_length", "max_context_length", "ttl",
    "worker_count", "seed", "tokens", "requests",
}  # fmt: skip
"""Keys that integer-typed clients read."""

NEVER_NULL = {
    "message", "skipped", "faulted", "is_possible", "done", "generations", "payload", "ids", "reward", "worker_id",
    "worker_name", "state", "type", "name", "maintenance_mode", "bridge_agent", "team", "kudos", "version", "username",
}  # fmt: skip
"""Keys that may be left out and may not be null."""


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key of an answer with its value, at any depth."""
    if isinstance(value, dict):
        yield from value.items()
        for inner in value.values():
            yield from members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner)


@pytest.fixture
def answers(bridge: TextBridge) -> dict[str, Any]:
    """One answer of each route that strict clients read, of a horde in which something happened."""
    found: dict[str, Any] = {"empty pop": bridge.pop().json()}
    body = {"prompt": "Once upon", "models": [bridge.model]}
    found["async"] = bridge.post("async", body, KEYS.demo).json()
    request_id = found["async"]["id"]
    bridge.asked.append(request_id)
    found["waiting"] = bridge.status(request_id)
    found["dry run"] = bridge.post("async", body | {"dry_run": True}, KEYS.demo).json()
    found["pop"] = bridge.pop().json()
    found["processing"] = bridge.status(request_id)
    found["submit"] = bridge.submit(found["pop"]["id"]).json()
    wait_until(lambda: bool(bridge.status(request_id)["done"]), 10, "the request does not end")
    found["done"] = bridge.status(request_id)
    for path in (
        "/workers?type=text",
        "/status/models?type=text",
        "/status/performance",
        "/status/heartbeat",
        "/status/modes",
        "/stats/text/totals",
        "/stats/text/models",
        "/users",
    ):
        found[path] = bridge.send("GET", path).json()
    found["find_user"] = bridge.send("GET", "/find_user", key=KEYS.demo).json()
    return found


def test_row_09_nothing_is_null_that_must_not_be_and_integers_are_whole(answers: dict[str, Any]) -> None:
    for name, answer in answers.items():
        found = list(members(answer))
        if name != "empty pop":
            nulls = {key for key, value in found if key in NEVER_NULL and value is None}
            assert nulls <= {"name"}, (name, nulls)  # a worker without a team has a team without a name
        fractions = {key: value for key, value in found if key in WHOLE and isinstance(value, float)}
        assert not fractions, (name, fractions)


@pytest.mark.parametrize("name", ["async", "dry run", "waiting", "processing", "done"])
def test_row_10_kudos_are_whole_where_a_client_reads_integers(answers: dict[str, Any], name: str) -> None:
    assert isinstance(answers[name]["kudos"], int)
