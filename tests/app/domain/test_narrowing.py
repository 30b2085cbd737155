"""The payload of a chat job, made from the stored request."""

from typing import Any

import pytest

from app.domain.narrowing import chat_payload, may_stream

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
JSON_OBJECT = {"type": "json_object"}
PLAIN = {
    "messages": [{"role": "user", "content": "hi"}],
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "stop": [],
    "seed": None,
    "max_tokens": 512,
    "max_length": 512,
    "max_context_length": 900,
    "stream": False,
    "conformance": "strict",
}


@pytest.fixture
def payload(chat: Any) -> Any:
    def make(*, declares_reasoning: bool = False, relays: bool = True, **members: Any) -> dict[str, object]:
        return chat_payload(
            chat(**members),
            max_length=512,
            max_context_length=900,
            declares_reasoning=declares_reasoning,
            stream=relays,
        )

    return make


def test_a_plain_request_gets_every_sampling_field_at_openais_default(payload: Any) -> None:
    assert payload() == PLAIN


def test_the_clients_sampling_is_sent_as_it_is(payload: Any) -> None:
    sampling = {"temperature": 0.2, "top_p": 0.5, "presence_penalty": -1.0, "frequency_penalty": 2.0, "seed": 7}
    assert payload(**sampling, stop="a") == PLAIN | sampling | {"stop": ["a"]}


def test_max_tokens_is_the_length_that_the_horde_settled_on(payload: Any) -> None:
    sent = payload(max_tokens=100_000)
    assert (sent["max_tokens"], sent["max_length"]) == (512, 512)


def test_labels_and_options_never_reach_the_worker(payload: Any) -> None:
    labels = {"user": "u", "metadata": {"a": "b"}, "safety_identifier": "s", "prompt_cache_key": "p"}
    assert payload(**labels, horde={"max_kudos": 5, "nsfw": True}, operation_key="k") == PLAIN


def test_best_effort_is_told_to_the_worker(payload: Any) -> None:
    assert payload(horde={"conformance": "best_effort"}) == PLAIN | {"conformance": "best_effort"}


@pytest.mark.parametrize(
    ("members", "sent"),
    [
        ({"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "auto", "parallel_tool_calls": True}),
        (
            {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
            {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}},
            {"tools": [TOOLS[1]], "tool_choice": "required", "parallel_tool_calls": True},
        ),
        ({"tools": TOOLS, "tool_choice": "none"}, {}),
        ({"response_format": JSON_OBJECT}, {"response_format": JSON_OBJECT}),
        ({"response_format": {"type": "text"}}, {}),
    ],
)
def test_tools_and_formats_are_narrowed(payload: Any, members: dict[str, Any], sent: dict[str, Any]) -> None:
    assert payload(**members) == PLAIN | sent


@pytest.mark.parametrize(
    ("effort", "declares", "sent"),
    [
        (None, False, {}),
        (None, True, {"reasoning_effort": "medium"}),
        ("medium", False, {}),
        ("medium", True, {"reasoning_effort": "medium"}),
        ("none", True, {"reasoning_effort": "none"}),
        ("high", True, {"reasoning_effort": "high"}),
    ],
)
def test_medium_reasoning_is_sent_to_a_worker_that_declares_it(
    payload: Any, effort: str | None, declares: bool, sent: dict[str, Any]
) -> None:
    assert payload(reasoning_effort=effort, declares_reasoning=declares) == PLAIN | sent


@pytest.mark.parametrize(
    ("members", "streams"),
    [
        ({"stream": True}, True),
        ({}, False),
        ({"stream": True, "response_format": {"type": "text"}}, True),
        ({"stream": True, "response_format": JSON_OBJECT}, False),
        ({"stream": True, "tools": TOOLS}, False),
        ({"stream": True, "tools": TOOLS, "tool_choice": "none"}, False),
    ],
)
def test_only_plain_text_is_streamed(chat: Any, payload: Any, members: dict[str, Any], streams: bool) -> None:
    assert may_stream(chat(**members)) is streams
    assert payload(**members)["stream"] is streams


def test_a_job_goes_out_unstreamed_when_the_caller_cannot_relay(payload: Any) -> None:
    assert payload(stream=True, relays=False) == PLAIN
