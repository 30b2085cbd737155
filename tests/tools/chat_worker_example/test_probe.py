"""The probe: against scripted backends of every shape, and its rules on replies alone."""

from typing import Any

import aiohttp
import pytest

from tests.support.scripted_backend import BackendShape, running_backend
from tools.chat_worker_example.backend import BackendError
from tools.chat_worker_example.backends import connect
from tools.chat_worker_example.probe import Findings, ModelMissing, Prober, pick_model
from tools.chat_worker_example.questions import (
    ONLY_INSTANCE,
    is_json_object,
    is_only_instance,
    is_probe_call,
    too_long_for,
)


async def probe(shape: BackendShape, claimed_context: int | None = None, **behaviours: str) -> Findings:
    async with running_backend(shape) as scripted, aiohttp.ClientSession() as session:
        if behaviours:
            scripted.plan(behaviours, times=None)
        return await Prober(await connect(session, scripted.url), "m", claimed_context).probe()


async def test_a_llama_cpp_server_is_measured_with_its_own_routes() -> None:
    findings = await probe(BackendShape(model="some.gguf", context=1024))
    assert findings.kind == "llama.cpp"
    assert findings.backend_model == "some.gguf"
    assert findings.measured_context == 1024
    assert findings.used_tokens == findings.counted_tokens
    assert findings.counts_tools
    assert {"json_object", "json_schema", "tools", "tool_choice_enforced"} <= findings.shown


async def test_a_counter_that_is_short_shows() -> None:
    findings = await probe(BackendShape(usage_skew=3))
    assert findings.used_tokens is not None
    assert findings.counted_tokens == findings.used_tokens - 3
    assert not findings.counts_tools


async def test_a_backend_without_counter_routes_still_has_its_usage() -> None:
    findings = await probe(BackendShape(llama_cpp=False))
    assert findings.kind == "openai"
    assert (findings.counted_tokens, findings.measured_context) == (None, None)
    assert findings.used_tokens is not None


async def test_a_backend_without_usage_leaves_nothing_to_check_a_counter_on() -> None:
    findings = await probe(BackendShape(reports_usage=False))
    assert findings.used_tokens is None
    assert not findings.counts_tools


async def test_tools_that_the_template_leaves_out_are_not_shown() -> None:
    findings = await probe(BackendShape(renders_tools=False))
    assert not findings.shown & {"tools", "tool_choice_enforced", "tool_choice_auto_faithful"}


async def test_prose_under_a_response_format_shows_no_json() -> None:
    findings = await probe(BackendShape(), not_json="")
    assert not findings.shown & {"json_object", "json_schema"}


async def test_a_call_nobody_asked_for_shows_that_auto_is_not_faithful() -> None:
    findings = await probe(BackendShape(), tool_call="record_harvest")
    assert {"tools", "tool_choice_enforced"} <= findings.shown
    assert "tool_choice_auto_faithful" not in findings.shown


async def test_a_backend_that_is_still_loading_is_asked_again_later() -> None:
    with pytest.raises(BackendError, match="503"):
        await probe(BackendShape(), status="503")


@pytest.mark.parametrize(
    ("listed", "picked"), [([], "m"), (["m", "n"], "m"), (["only.gguf"], "only.gguf"), (["m"], "m")]
)
def test_the_model_to_call_is_the_configured_or_the_only_one(listed: list[str], picked: str) -> None:
    assert pick_model("m", listed) == picked


def test_a_model_that_is_not_among_several_is_refused() -> None:
    with pytest.raises(ModelMissing, match=r"a, b"):
        pick_model("m", ["b", "a"])


async def test_a_backend_that_refuses_what_is_too_long_cannot_trim() -> None:
    findings = await probe(BackendShape())
    assert findings.evidence["overflow"].shown
    assert findings.trimmed_to is None


async def test_a_backend_that_trims_in_silence_is_caught() -> None:
    findings = await probe(BackendShape(llama_cpp=False, context=2048, trims_to=2047), claimed_context=8192)
    assert findings.trimmed_to == 2047
    assert findings.evidence["overflow"].words.endswith("trimmed to 2047 in silence")


async def test_a_context_that_is_larger_than_claimed_is_no_trimming() -> None:
    findings = await probe(BackendShape(context=8192), claimed_context=1024)
    assert findings.trimmed_to is None
    assert "was taken" in findings.evidence["overflow"].words


@pytest.mark.parametrize("context", [80, 4096, 131072])
def test_the_overlong_conversation_has_more_words_than_the_context_tokens_and_ends_with_the_user(context: int) -> None:
    conversation = too_long_for(context)
    words = sum(len(message["content"].split()) for message in conversation)
    assert context < words < 1.3 * context + 50
    assert {message["role"] for message in conversation[::2]} == {"user"}
    assert max(len(message["content"].split()) for message in conversation) <= context // 32 + 1


@pytest.mark.parametrize("vision", [True, False])
async def test_a_picture_that_makes_the_prompt_longer_shows_images(vision: bool) -> None:
    assert ("images" in (await probe(BackendShape(vision=vision))).shown) == vision


@pytest.mark.parametrize("reasons", [True, False])
async def test_reasoning_that_follows_the_effort_shows_reasoning(reasons: bool) -> None:
    assert ("reasoning" in (await probe(BackendShape(reasons=reasons))).shown) == reasons


async def test_reasoning_that_the_effort_does_not_change_shows_nothing() -> None:
    findings = await probe(BackendShape(), reasoning="always the same")
    assert findings.evidence["reasoning"].words.endswith("the effort changed nothing")


@pytest.mark.parametrize(
    ("content", "finish", "accepted"),
    [
        ('{"a": 1}', "stop", True),
        ("{}", "length", True),
        ('{"a": {"b": 1, "c": 2}, "d": "cut he', "length", True),
        ('{"a": 1, "b": {"c": 1, "d', "length", True),
        ("{ \n\t ", "length", True),
        ("{ \n\t ", "stop", False),
        ('{"a": 1, "d": "cut he', "stop", False),
        ('{"a cut before the first comma', "length", False),
        ("[1, 2", "length", False),
        ("hello, world", "length", False),
        ("[1]", "stop", False),
        (None, "length", False),
    ],
)
def test_a_json_object_may_be_cut_only_by_the_token_limit(content: str | None, finish: str, accepted: bool) -> None:
    assert is_json_object({"message": {"content": content}, "finish_reason": finish}) is accepted


@pytest.mark.parametrize(
    ("content", "finish", "accepted"),
    [
        (ONLY_INSTANCE, "stop", True),
        ('{ "token"\n: "k7f3q" }', "stop", True),
        ('{\n\t"token"\n\t\t', "length", True),
        ('{\n\t"token"\n\t\t', "stop", False),
        ('{"token": "another"}', "stop", False),
        ('{"tok": "k7', "length", False),
        ("", "length", False),
        (None, "stop", False),
    ],
)
def test_a_schema_reply_may_be_cut_only_by_the_token_limit(content: str | None, finish: str, accepted: bool) -> None:
    assert is_only_instance({"message": {"content": content}, "finish_reason": finish}) is accepted


@pytest.mark.parametrize(
    ("name", "arguments", "accepted"),
    [
        ("record_harvest", '{"crates": 3}', True),
        ("record_harvest", "{}", False),
        ("record_harvest", "three", False),
        ("another", '{"crates": 3}', False),
    ],
)
def test_a_probe_call_names_the_tool_and_fits_its_parameters(name: str, arguments: str, accepted: bool) -> None:
    assert is_probe_call(calling((name, arguments), finish="stop")) is accepted


def calling(*calls: tuple[str, str], finish: str) -> dict[str, Any]:
    made = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    return {"message": {"tool_calls": made}, "finish_reason": finish}


@pytest.mark.parametrize(("finish", "accepted"), [("length", True), ("tool_calls", False)])
def test_a_second_probe_call_may_be_cut_by_the_token_limit(finish: str, accepted: bool) -> None:
    reply = calling(("record_harvest", '{"crates": 3}'), ("record_harvest", '{"cra'), finish=finish)
    assert is_probe_call(reply) is accepted


def test_a_cut_call_alone_shows_nothing() -> None:
    assert not is_probe_call(calling(("record_harvest", '{"cra'), finish="length"))


async def test_a_backend_without_reasoning_is_asked_for_it_once() -> None:
    async with running_backend() as backend, aiohttp.ClientSession() as session:
        await Prober(await connect(session, backend.url), "m").probe()
        efforts = [asked["reasoning_effort"] for asked in backend.requests if "reasoning_effort" in asked]
    assert efforts == ["high"]
