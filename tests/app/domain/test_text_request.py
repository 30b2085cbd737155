"""Text bodies as existing clients send them."""

from dataclasses import asdict
from typing import Any

import orjson
import pytest

from app.domain.errors import (
    ExcessiveStopSequence,
    HordeError,
    MissingFullSamplerOrder,
    MissingPrompt,
    TokenOverflow,
    TooManyStopSequences,
    ValidationFailed,
)
from app.domain.text_reply import parse_text_reply
from app.domain.text_request import parse_text_request, stored_contract, text_payload


def parsed(**members: Any) -> Any:
    return parse_text_request({"prompt": "Once upon"} | members)


def test_what_is_left_out_has_the_wire_references_defaults() -> None:
    request = parsed()
    assert (request.n, request.max_length, request.max_context_length, request.models) == (1, 80, 2048, ())


def test_unknown_keys_are_accepted_and_go_no_further() -> None:
    request = parsed(client_agent="x", params={"mirostat": 2, "temperature": 0.7, "max_length": 120.0})
    payload = text_payload(request.prompt, stored_contract(request))
    assert payload == {
        "prompt": "Once upon",
        "n": 1,
        "max_context_length": 2048,
        "max_length": 120,
        "temperature": 0.7,
        "min_p": 0.0,
        "smoothing_factor": 0.0,
        "dynatemp_range": 0.0,
        "dynatemp_exponent": 1.0,
    }


@pytest.mark.parametrize(
    "members",
    [
        {"prompt": "a\0b"},
        {"models": ["a\0b"]},
        {"workers": ["a\0b"]},
        {"softprompt": "a\0b"},
        {"params": {"stop_sequence": ["\n", "a\0b"]}},
    ],
)
def test_no_text_holds_a_character_that_the_database_cannot_keep(members: dict[str, Any]) -> None:
    stored = orjson.dumps(asdict(parsed(**members))).decode()
    assert "a\ufffdb" in stored
    assert "\\u0000" not in stored


@pytest.mark.parametrize(
    ("members", "keys"),
    [
        ({"params": {"max_length": 8}}, ["params.max_length"]),
        ({"params": {"max_length": 80.5, "n": 21}}, ["params.n", "params.max_length"]),
        ({"params": {"temperature": None}}, ["params.temperature"]),
        ({"params": []}, ["params"]),
        ({"prompt": None}, ["prompt"]),
        ({"models": None}, ["models"]),
        ({"workers": [1]}, ["workers"]),
        ({"trusted_workers": "true"}, ["trusted_workers"]),
        ({"softprompt": ""}, ["softprompt"]),
    ],
)
def test_every_key_that_cannot_be_used_is_named(members: dict[str, Any], keys: list[str]) -> None:
    with pytest.raises(ValidationFailed) as refused:
        parsed(**members)
    assert sorted(refused.value.errors) == sorted(keys)


def test_a_body_without_a_prompt_is_refused_by_that_key() -> None:
    with pytest.raises(ValidationFailed) as refused:
        parse_text_request({})
    assert list(refused.value.errors) == ["prompt"]


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"prompt": ""}, MissingPrompt),
        ({"params": {"max_length": 200, "max_context_length": 100}}, TokenOverflow),
        ({"params": {"stop_sequence": ["x"] * 129}}, TooManyStopSequences),
        ({"params": {"stop_sequence": ["x" * 2001]}}, ExcessiveStopSequence),
        ({"params": {"sampler_order": [0, 1, 2, 3, 4, 5, 5]}}, MissingFullSamplerOrder),
    ],
)
def test_what_does_not_fit_together_has_its_own_code(members: dict[str, Any], error: type[HordeError]) -> None:
    with pytest.raises(error):
        parsed(**members)


def test_only_the_first_five_workers_count() -> None:
    assert parsed(workers=list("abcdefg")).workers == tuple("abcde")


@pytest.mark.parametrize(
    ("members", "key"),
    [
        ({"generation": None}, "generation"),
        ({"seed": "x"}, "seed"),
        ({"state": "lost"}, "state"),
        ({"gen_metadata": [{"type": "other", "value": "csam"}]}, "gen_metadata"),
        ({"gen_metadata": [{"type": "censorship", "value": "csam"}] * 51}, "gen_metadata"),
    ],
)
def test_a_reply_that_cannot_be_used_is_refused_before_it_is_stored(members: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        parse_text_reply({"generation": "x"} | members)
    assert list(refused.value.errors) == [key]


def test_a_reply_keeps_its_text_without_what_nobody_could_store() -> None:
    assert parse_text_reply({"generation": "a\x00b", "seed": 3}).stored() == {
        "text": "a\ufffdb",
        "state": "ok",
        "seed": 3,
        "gen_metadata": [],
    }
