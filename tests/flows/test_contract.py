"""Rules of the contract that need more than a parser: models, context, moderation, through the front."""

from typing import Any

import openai
import pytest

from app.domain.moderation import FilterKind
from tests.support.hand_worker import call
from tests.support.horde import MODEL, HordeProcesses
from tests.support.services import wait_until

FIT = {"horde": {"context_fit": "truncate_oldest"}}
LONG = "漢 " * 20_000


def test_an_unknown_name_in_a_list_of_models_is_not_found_and_what_is_online_is_told(horde: HordeProcesses) -> None:
    body = {"models": [MODEL, "never-heard-of"], "messages": [{"role": "user", "content": "hi"}]}
    front = call("POST", f"{horde.front}/v1/chat/completions", body)
    native = call("POST", f"{horde.native}/api/v2/generate/chat/async", body)
    assert (front.status, front.body["error"]["code"]) == (404, "model_not_found")
    assert (native.status, native.body["rc"]) == (404, "model_not_found")
    assert native.body["message"] in front.body["error"]["message"]
    told = front.body["error"]["message"].partition(" Online: ")[2].removesuffix(".").partition(" and ")[0].split(", ")
    assert set(told) <= {model["id"] for model in call("GET", f"{horde.front}/v1/models").body["data"]}


def test_a_model_with_a_colon_is_not_found_on_the_front(horde: HordeProcesses) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        horde.openai().chat.completions.create(model="a:b", messages=[{"role": "user", "content": "hi"}])
    assert refused.value.code == "model_not_found"


def test_a_conversation_too_long_for_every_context_says_so_in_the_words_that_agents_look_for(
    horde: HordeProcesses,
) -> None:
    with pytest.raises(openai.BadRequestError, match="maximum context length is") as refused:
        horde.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": LONG}])
    assert refused.value.code == "no_worker_supports_limit"
    assert "horde.context_fit" in refused.value.message


def test_its_oldest_turns_fall_where_the_client_allows_it(horde: HordeProcesses) -> None:
    answer = horde.openai().chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "user", "content": LONG},
            {"role": "assistant", "content": "I see."},
            {"role": "user", "content": "What now?"},
        ],
        extra_body=FIT,
    )
    assert answer.choices[0].message.content == "What now?"


def test_a_latest_turn_that_no_context_holds_is_refused_all_the_same(horde: HordeProcesses) -> None:
    with pytest.raises(openai.BadRequestError, match="maximum context length is"):
        horde.openai().chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": LONG}], extra_body=FIT
        )


def test_what_moderation_blocks_is_refused_on_both_faces(horde: HordeProcesses) -> None:
    word = "unspeakable-word-of-this-test"
    body = {"model": MODEL, "messages": [{"role": "user", "content": f"Say {word}."}]}
    ((number,),) = horde.query(
        "INSERT INTO filters (kind, pattern) VALUES (:kind, :pattern) RETURNING id",
        kind=FilterKind.BLOCK.value,
        pattern=word,
    )
    try:
        wait_until(
            lambda: call("POST", f"{horde.native}/api/v2/generate/chat/async", body | {"dry_run": True}).status == 400,
            30,
            "the filter does not come into force",
        )
        front = call("POST", f"{horde.front}/v1/chat/completions", body)
        native = call("POST", f"{horde.native}/api/v2/generate/chat/async", body)
    finally:
        horde.query("DELETE FROM filters WHERE id = :id", id=number)
    assert (front.status, front.body["error"]["code"]) == (400, "CorruptPrompt")
    assert (native.status, native.body["rc"]) == (400, "CorruptPrompt")
    assert front.body["error"]["metadata"] == native.body["metadata"] == {"filter": number}
    assert horde.query("SELECT 1 FROM request_bodies WHERE strpos(submitted_prompt, :word) > 0", word=word) == []


def test_the_same_refusal_comes_from_both_faces(horde: HordeProcesses) -> None:
    bodies: list[dict[str, Any]] = [
        {"model": MODEL},
        {"messages": []},
        {"model": MODEL, "messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}]},
        {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "min_p": 1},
        {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "temperature": 3},
        {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "horde": {"pinned_model": "x"}},
        {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "n": 2},
    ]
    for body in bodies:
        front = call("POST", f"{horde.front}/v1/chat/completions", body)
        native = call("POST", f"{horde.native}/api/v2/generate/chat/async", body)
        said = {name: front.body["error"][name] for name in ("message", "param", "code")}
        assert said == {"message": native.body["message"], "param": native.body["param"], "code": native.body["rc"]}
        assert front.status == native.status == 400
