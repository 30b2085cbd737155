"""Every row of the features, guarantees and limits (contract C4), in both modes, over HTTP with scripted workers."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import urllib3

from tests.support.horde import KEYS, HordeProcesses
from tests.support.pictures import data_url, picture
from tests.support.services import wait_until

TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    },
}
PLAIN = {"messages": [{"role": "user", "content": "Answer as JSON."}]}
PICTURE = {
    "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": data_url(picture())}}] * 2}]
}
OVERFLOW = "prompt_overflow_refused"
FORCED = "tool_choice_enforced"
AUTO = "tool_choice_auto_faithful"
EVERYTHING = [
    "tools",
    "json_object",
    "json_schema",
    "images",
    "reasoning",
    OVERFLOW,
    FORCED,
    AUTO,
    "json_object_enforced",
    "json_schema_enforced",
]

FEATURES = [
    ("tools", PLAIN | {"tools": [TOOL]}),
    ("json_object", PLAIN | {"response_format": {"type": "json_object"}}),
    ("json_schema", PLAIN | {"response_format": SCHEMA}),
    ("images", PICTURE),
    ("reasoning", PLAIN | {"reasoning_effort": "high"}),
]
GUARANTEES = [
    (OVERFLOW, PLAIN),
    (FORCED, PLAIN | {"tools": [TOOL], "tool_choice": "required"}),
    (FORCED, PLAIN | {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look_up"}}}),
    (AUTO, PLAIN | {"tools": [TOOL]}),
    ("json_object_enforced", PLAIN | {"response_format": {"type": "json_object"}}),
    ("json_schema_enforced", PLAIN | {"response_format": SCHEMA}),
]
LIMITS = [
    ("max_context_length", PLAIN | {"horde": {"max_context_length": 5000}}, 4999, 5000),
    ("max_length", PLAIN | {"max_tokens": 700}, 699, 700),
    ("max_images", PICTURE, 1, 2),
    ("max_tools", PLAIN | {"tools": [TOOL, {"type": "function", "function": {"name": "other"}}]}, 1, 2),
    ("tools_max_temperature", PLAIN | {"tools": [TOOL], "temperature": 0.9}, 0.8, 0.9),
]
NOT_REQUIRED = [
    PLAIN | {"tools": [TOOL], "tool_choice": "none"},
    PLAIN | {"reasoning_effort": "medium"},
    PLAIN | {"tools": [TOOL], "parallel_tool_calls": False},
]
MODES = ["strict", "best_effort"]


class Workers:
    """Scripted workers of a model of their own, and its requester."""

    def __init__(self, horde: HordeProcesses, http: urllib3.PoolManager) -> None:
        self.horde = horde
        self.http = http
        self.model = f"model-{uuid4().hex[:8]}"
        self.asked: list[str] = []

    def call(self, path: str, body: dict[str, Any], key: str) -> Any:
        url = f"{self.horde.native}/api/v2/generate/{path}"
        answer = self.http.request("POST", url, json=body, headers={"apikey": key})
        assert answer.status in {200, 202}, answer.data
        return answer.json()

    def pop(self, name: str, features: list[str], **limits: float) -> str | None:
        job = self.call(
            "text/pop",
            {
                "name": f"{name} of {self.model}",
                "chat_jobs": True,
                "prompt_jobs": False,
                "model_id": self.model,
                "chat_features": features,
                "chat_limits": limits,
                "image_transports": ["url"],
                "max_length": 1024,
                "max_context_length": 100_000,
            },
            KEYS.worker,
        )["id"]
        return None if job is None else str(job)

    def ask(self, body: dict[str, Any], mode: str, *, online: bool = True) -> Any:
        """Ask with somebody online who serves the model and covers everything, unless a test says otherwise."""
        if online:
            self.pop("able", EVERYTHING)
        horde = {**body.get("horde", {}), "conformance": mode}
        accepted = self.call("chat/async", body | {"model": self.model, "horde": horde}, KEYS.demo)
        self.asked.append(accepted["id"])
        if accepted["status"]["state"] == "preparing":
            wait_until(lambda: self.state(accepted["id"]) == "queued", 30, "the images are not prepared")
        return accepted

    def state(self, request_id: str) -> str:
        url = f"{self.horde.native}/api/v2/generate/chat/status/{request_id}"
        return str(self.http.request("GET", url, headers={"apikey": KEYS.demo}).json()["state"])

    def cancel_all(self) -> None:
        """Leave nothing open for other flows to find."""
        for request_id in self.asked:
            url = f"{self.horde.native}/api/v2/generate/chat/status/{request_id}"
            assert self.http.request("DELETE", url, headers={"apikey": KEYS.demo}).status == 200


@pytest.fixture
def workers(horde: HordeProcesses) -> Iterator[Workers]:
    with urllib3.PoolManager(timeout=30) as http:
        made = Workers(horde, http)
        yield made
        made.cancel_all()


def without(*names: str) -> list[str]:
    return [name for name in EVERYTHING if name not in names]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("feature", "body"), FEATURES, ids=[row[0] for row in FEATURES])
def test_a_feature_is_required_in_both_modes(workers: Workers, feature: str, body: dict[str, Any], mode: str) -> None:
    workers.ask(body, mode)
    assert workers.pop("unable", without(feature)) is None
    assert workers.pop("able", EVERYTHING) is not None


@pytest.mark.parametrize(("guarantee", "body"), GUARANTEES)
def test_a_guarantee_is_required_under_strict_alone(workers: Workers, guarantee: str, body: dict[str, Any]) -> None:
    workers.ask(body, "strict")
    assert workers.pop("unable", without(guarantee)) is None
    assert workers.pop("able", EVERYTHING) is not None
    workers.ask(body, "best_effort")
    assert workers.pop("unable", without(guarantee)) is not None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("limit", "body", "small", "enough"), LIMITS, ids=[row[0] for row in LIMITS])
def test_a_limit_holds_in_both_modes_to_the_last_one(
    workers: Workers, limit: str, body: dict[str, Any], small: float, enough: float, mode: str
) -> None:
    workers.ask(body, mode)
    assert workers.pop("small", EVERYTHING, **{limit: small}) is None
    assert workers.pop("enough", EVERYTHING, **{limit: enough}) is not None


@pytest.mark.parametrize("body", NOT_REQUIRED)
def test_what_does_not_reach_the_worker_is_not_required(workers: Workers, body: dict[str, Any]) -> None:
    workers.ask(body, "strict")
    extra = [AUTO, "tools"] if body.get("tool_choice") != "none" and "tools" in body else []
    assert workers.pop("plain", [OVERFLOW, *extra]) is not None


@pytest.mark.parametrize("mode", MODES)
def test_a_status_says_which_single_declaration_is_missing(workers: Workers, mode: str) -> None:
    workers.pop("plain", [OVERFLOW])
    status = workers.ask(PLAIN | {"tools": [TOOL]}, mode, online=False)["status"]
    names = {missing["name"] for missing in status["declaration_gap"]["missing"]}
    assert names == ({"tools", AUTO} if mode == "strict" else {"tools"})
    assert not status["is_possible"]
