"""Each row of the front's table of refusals (front F5), as the OpenAI SDK sees it."""

from typing import Any

import openai
import pytest

from tests.flows.test_chat import TOOL
from tests.support.horde import MODEL, HordeProcesses

IMAGE = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]


def refused(horde: HordeProcesses, key: str | None = None, **more: Any) -> openai.APIStatusError:
    """What the SDK raises for a request."""
    client = horde.openai() if key is None else horde.openai(key)
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}], **more}
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**body)
    return caught.value


ROWS = [
    ("an absent model", {"model": "absent"}, 503, "no_eligible_worker", "true"),
    ("a feature", {"messages": [{"role": "user", "content": IMAGE}]}, 404, "no_worker_supports_features", None),
    ("a size", {"extra_body": {"horde": {"max_context_length": 10_000_000}}}, 400, "no_worker_supports_limit", None),
    (
        "nobody selected",
        {"extra_body": {"horde": {"trusted_workers": True}}},
        503,
        "no_eligible_worker",
        "false",
    ),
    (
        "fail_fast",
        {"extra_body": {"horde": {"trusted_workers": True, "availability_mode": "fail_fast"}}},
        503,
        "queue_unavailable",
        "false",
    ),
    ("a parameter", {"extra_body": {"min_p": 0.1}}, 400, "UnsupportedChatParameter", None),
    (
        "a faulting worker",
        {"messages": [{"role": "user", "content": "[[status=502]]"}]},
        502,
        "ChatRequestFaulted",
        "false",
    ),
]


@pytest.mark.parametrize(("body", "status", "code"), [row[1:4] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_refusal_has_its_status_and_code(horde: HordeProcesses, body: dict[str, Any], status: int, code: str) -> None:
    error = refused(horde, **body)
    assert (error.status_code, error.code) == (status, code)
    assert set(error.body) >= {"message", "type", "param", "code", "metadata"}  # type: ignore[call-overload]


@pytest.mark.parametrize("body", [row[1] for row in ROWS if row[4] == "false"])
def test_after_a_submit_no_client_is_told_to_retry(horde: HordeProcesses, body: dict[str, Any]) -> None:
    assert refused(horde, **body).response.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("body", [row[1] for row in ROWS if row[2] == 503])
def test_who_finds_nobody_is_told_when_to_come_again(horde: HordeProcesses, body: dict[str, Any]) -> None:
    assert 1 <= int(refused(horde, **body).response.headers["Retry-After"]) <= 60


def test_a_limits_gap_says_what_was_asked_and_the_largest_there_is(horde: HordeProcesses) -> None:
    body: Any = refused(horde, extra_body={"horde": {"max_context_length": 10_000_000}}).body
    assert body["metadata"]["limit"] == "max_context_length"
    assert body["metadata"]["asked"] == 10_000_000
    assert body["metadata"]["largest"] < 10_000_000


def test_a_declaration_gap_says_what_is_missing_and_how_many_declare_it(horde: HordeProcesses) -> None:
    body: Any = refused(horde, messages=[{"role": "user", "content": IMAGE}]).body
    assert "images" in str(body["metadata"])


def test_a_bad_key_is_refused(horde: HordeProcesses) -> None:
    error = refused(horde, key="no-such-key", tools=[TOOL])
    assert (error.status_code, error.code) == (401, "invalid_api_key")


def test_a_request_that_was_refused_after_its_submit_is_cancelled(horde: HordeProcesses) -> None:
    refused(horde, extra_body={"horde": {"trusted_workers": True}})
    horde.require_sound()
    assert horde.query("SELECT 1 FROM horde_requests WHERE state IN ('queued', 'processing')") == []
