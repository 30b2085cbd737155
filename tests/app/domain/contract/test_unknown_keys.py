"""What is not implemented: refused by name, or on the front dropped at its default."""

from typing import Any

import pytest

from app.domain.contract import Face
from app.domain.contract.readers import READERS, UNSUPPORTED_KEYS

NO_OPS = [
    {"n": 1},
    {"logprobs": False},
    {"store": False},
    {"service_tier": "auto"},
    {"service_tier": "default"},
    {"modalities": ["text"]},
    {"verbosity": "medium"},
    {"logit_bias": {}},
]


@pytest.mark.parametrize("face", list(Face))
@pytest.mark.parametrize("key", ["zzz", "top_k", "min_p", "repetition_penalty", "keep_alive", "id"])
def test_an_unknown_key_is_refused_by_name(refused: Any, face: Face, key: str) -> None:
    assert refused(face=face, **{key: 1}) == (f"Unknown parameter: '{key}'.", key, "UnsupportedChatParameter")


@pytest.mark.parametrize("face", list(Face))
@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("n", 2, "Each request yields one choice: leave it out."),
        ("logprobs", True, "Leave it out."),
        ("audio", {}, "Leave it out."),
        ("web_search_options", {}, "Leave it out."),
        ("functions", [], "Use 'tools'."),
        ("function_call", "auto", "Use 'tool_choice'."),
        ("service_tier", "flex", "Leave it out."),
        ("modalities", ["text", "audio"], "Leave it out."),
        ("store", True, "Leave it out."),
    ],
)
def test_a_key_of_openais_that_is_not_implemented_is_refused_with_advice(
    refused: Any, face: Face, key: str, value: object, advice: str
) -> None:
    message, param, code = refused(face=face, **{key: value})
    assert message == f"Unsupported parameter: '{key}' is not supported by the horde. {advice}"
    assert (param, code) == (key, "UnsupportedChatParameter")


@pytest.mark.parametrize("member", NO_OPS, ids=str)
def test_the_front_drops_a_no_op_at_its_default(parsed: Any, member: dict[str, Any]) -> None:
    assert parsed(face=Face.FRONT, **member) == parsed()


@pytest.mark.parametrize("member", NO_OPS, ids=str)
def test_the_native_face_refuses_what_the_front_drops(refused: Any, member: dict[str, Any]) -> None:
    assert refused(**member)[2] == "UnsupportedChatParameter"


@pytest.mark.parametrize("member", [{"n": True}, {"n": 1.0}, {"logprobs": 0}, {"store": 0}], ids=str)
def test_the_front_compares_types_too(refused: Any, member: dict[str, Any]) -> None:
    assert refused(face=Face.FRONT, **member)[1] == next(iter(member))


@pytest.mark.parametrize("member", [{"operation_key": "k"}, {"dry_run": True}], ids=str)
def test_native_keys_are_unknown_to_the_front(refused: Any, member: dict[str, Any]) -> None:
    key = next(iter(member))
    assert refused(face=Face.FRONT, **member) == (f"Unknown parameter: '{key}'.", key, "UnsupportedChatParameter")


def test_a_very_long_key_is_echoed_shortened(refused: Any) -> None:
    message, param, _ = refused(**{"z" * 100_000: 1})
    assert len(message) < 300
    assert param is not None
    assert len(param) < 300


def test_no_key_is_both_read_and_unsupported() -> None:
    assert READERS.keys().isdisjoint(UNSUPPORTED_KEYS)
