"""The first chat: the OpenAI SDK through front, native API, worker, verification and settlement, and back."""

import openai
import pytest

from tests.support.horde import KEYS, MODEL, HordeProcesses

TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks a word up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
    },
}


def ask(horde: HordeProcesses, text: str, **more: object) -> openai.types.chat.ChatCompletion:
    answer = horde.openai().chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": text}],
        **more,  # type: ignore[call-overload]
    )
    assert isinstance(answer, openai.types.chat.ChatCompletion)
    return answer


def ask_about_a_picture(horde: HordeProcesses) -> None:
    """Ask for what no worker of the flows declares."""
    horde.openai().chat.completions.create(
        model=MODEL,
        messages=[
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
            }
        ],
    )


def test_a_plain_chat_is_answered(horde: HordeProcesses) -> None:
    answer = ask(horde, "Hello, horde.")
    assert answer.choices[0].message.content == "Hello, horde."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == MODEL
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0


def test_the_answer_says_what_it_cost_and_who_wrote_it(horde: HordeProcesses) -> None:
    answer = ask(horde, "Hello.")
    x_horde = answer.model_extra["x_horde"]  # type: ignore[index]
    assert answer.id == f"chatcmpl-{x_horde['request_id']}"
    assert x_horde["charge_basis"] == "output_estimate"
    assert x_horde["worker"]["name"] == "flows"
    assert x_horde["kudos"] > 2


def test_a_stream_carries_the_whole_reply(horde: HordeProcesses) -> None:
    stream = horde.openai().chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Stream this, please: 👩‍👩‍👧‍👦 ñ 漢."}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    content = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert content == "Stream this, please: 👩‍👩‍👧‍👦 ñ 漢."
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_tool_call_comes_back_plain_and_streamed(horde: HordeProcesses) -> None:
    answer = ask(horde, "[[tool_call]]", tools=[TOOL])
    assert answer.choices[0].finish_reason == "tool_calls"
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].function.name == "look_up"  # type: ignore[union-attr]
    with horde.openai().chat.completions.stream(
        model=MODEL,
        messages=[{"role": "user", "content": "[[tool_call]]"}],
        tools=[TOOL],  # type: ignore[list-item]
    ) as stream:
        final = stream.get_final_completion()
    streamed = final.choices[0].message.tool_calls
    assert streamed is not None
    assert streamed[0].function.name == "look_up"


def test_an_agents_second_turn_replays_the_first(horde: HordeProcesses) -> None:
    first = ask(horde, "[[tool_call]]", tools=[TOOL]).choices[0].message
    assert first.tool_calls is not None
    answer = horde.openai().chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "user", "content": "[[tool_call]]"},
            first,  # type: ignore[list-item]
            {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "a word"},
            {"role": "user", "content": "Thanks."},
        ],
        tools=[TOOL],  # type: ignore[list-item]
    )
    assert answer.choices[0].message.content == "Thanks."


def test_reasoning_is_apart_from_the_answer(horde: HordeProcesses) -> None:
    message = ask(horde, "[[reasoning=Let me think.]][[say=42.]]").choices[0].message
    assert message.content == "42."
    assert message.model_extra["reasoning_content"] == "Let me think."  # type: ignore[index]


def test_reasoning_can_be_left_out(horde: HordeProcesses) -> None:
    message = (
        ask(horde, "[[reasoning=Let me think.]][[say=42.]]", extra_body={"horde": {"include_reasoning": False}})
        .choices[0]
        .message
    )
    assert message.content == "42."
    assert "reasoning_content" not in (message.model_extra or {})


def test_a_cut_reply_says_so(horde: HordeProcesses) -> None:
    assert ask(horde, "[[length]]Hello.").choices[0].finish_reason == "length"


def test_a_request_without_a_key_is_anonymous(horde: HordeProcesses) -> None:
    answer = horde.openai().chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Hello."}],
        extra_headers={"Authorization": openai.omit},
    )
    request_id = answer.model_extra["x_horde"]["request_id"]  # type: ignore[index]
    assert horde.query("SELECT user_id FROM horde_requests WHERE id = :id", id=request_id) == [(0,)]


def test_a_bad_key_is_refused_in_the_envelope(horde: HordeProcesses) -> None:
    with pytest.raises(openai.AuthenticationError) as refused:
        horde.openai("no-such-key").chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "Hello."}]
        )
    assert refused.value.code == "invalid_api_key"


def test_a_model_that_nobody_serves_is_refused_at_once(horde: HordeProcesses) -> None:
    with pytest.raises(openai.InternalServerError) as refused:
        horde.openai().chat.completions.create(model="absent", messages=[{"role": "user", "content": "Hello."}])
    assert (refused.value.status_code, refused.value.code) == (503, "no_eligible_worker")


def test_a_feature_that_nobody_declares_is_a_404_that_names_it(horde: HordeProcesses) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        ask_about_a_picture(horde)
    assert refused.value.code == "no_worker_supports_features"
    assert "images" in str(refused.value.body)


def test_a_refused_request_leaves_nothing_open(horde: HordeProcesses) -> None:
    open_requests = "SELECT id FROM horde_requests WHERE ended_at IS NULL AND requirements -> 'images' <> '0'"
    before = horde.query(open_requests)
    with pytest.raises(openai.NotFoundError):
        ask_about_a_picture(horde)
    horde.require_sound()
    assert horde.query(open_requests) == before


def test_an_unknown_parameter_is_named(horde: HordeProcesses) -> None:
    with pytest.raises(openai.BadRequestError, match="min_p"):
        ask(horde, "Hello.", extra_body={"min_p": 0.1})


def test_a_reply_that_breaks_the_contract_is_tried_again_and_faulted_in_the_end(horde: HordeProcesses) -> None:
    with pytest.raises(openai.InternalServerError) as failed:
        ask(horde, "[[unknown_function]]", tools=[TOOL])
    assert (failed.value.status_code, failed.value.code) == (502, "ChatRequestFaulted")
    assert failed.value.response.headers["x-should-retry"] == "false"


def test_a_conversation_that_overflows_the_backend_is_faulted_and_never_trimmed(horde: HordeProcesses) -> None:
    with pytest.raises(openai.APIStatusError):
        ask(horde, "漢" * 40_000)


def test_the_models_are_listed(horde: HordeProcesses) -> None:
    assert MODEL in [model.id for model in horde.openai().models.list()]
    assert horde.openai().models.retrieve(MODEL).id == MODEL


def test_each_answer_is_charged_once_and_its_worker_paid(horde: HordeProcesses) -> None:
    request_id = ask(horde, "Hello.").model_extra["x_horde"]["request_id"]  # type: ignore[index]
    horde.require_sound()
    kinds = horde.query(
        "SELECT e.kind, count(*) FROM ledger_entries e JOIN generations g ON e.business_key = 'generation:' || g.id"
        " WHERE g.request_id = :id GROUP BY e.kind ORDER BY e.kind",
        id=request_id,
    )
    assert kinds == [("charge", 1), ("fee", 1), ("reward", 1), ("reward_escrow", 1)]


def test_a_client_that_leaves_cancels_its_request(horde: HordeProcesses) -> None:
    with pytest.raises(openai.APITimeoutError):
        horde.openai(timeout=1).chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "[[delay=4]]Hello."}]
        )
    horde.require_sound()
    assert horde.query("SELECT state FROM horde_requests ORDER BY created_at DESC LIMIT 1") == [("cancelled",)]


def test_the_passkey_of_the_front_opens_nothing_for_others(horde: HordeProcesses) -> None:
    assert KEYS.service_passkey not in (horde.folder / "front.log").read_text()
    assert KEYS.service_passkey not in (horde.folder / "web.log").read_text()
