"""`model` and `models`, and the colon that the front reserves."""

from typing import Any

import pytest

from app.domain.contract import Face, parse_chat_request
from app.domain.errors import ContractRefusal

MESSAGES = [{"role": "user", "content": "hi"}]


def test_a_single_model_is_a_list_of_one(parsed: Any) -> None:
    assert parsed().models == ("m",)


def test_the_order_of_models_means_nothing() -> None:
    first = parse_chat_request({"models": ["b", "a"], "messages": MESSAGES}, Face.NATIVE)
    assert first.models == ("a", "b")


@pytest.mark.parametrize(
    ("members", "message", "param", "code"),
    [
        (
            {"model": "m", "models": ["m"]},
            "Invalid value for 'models': give either 'model' or 'models', not both.",
            "models",
            "invalid_request",
        ),
        (
            {"models": []},
            "Invalid 'models': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            "models",
            "empty_array",
        ),
        (
            {"models": "m"},
            "Invalid type for 'models': expected an array of strings, but got a string instead.",
            "models",
            "invalid_type",
        ),
        (
            {"models": ["m", 1]},
            "Invalid type for 'models[1]': expected a string, but got an integer instead.",
            "models[1]",
            "invalid_type",
        ),
        ({"models": ["m", ""]}, "you must provide a model parameter", "models", "invalid_request"),
        (
            {"models": ["m", "m"]},
            "Invalid value for 'models': each model may be named once.",
            "models",
            "invalid_request",
        ),
        (
            {"models": [str(number) for number in range(17)]},
            (
                "Invalid 'models': array too long. Expected an array with maximum length 16, "
                "but got an array with length 17 instead."
            ),
            "models",
            "array_above_max_length",
        ),
    ],
)
def test_a_bad_list_of_models_is_refused(members: dict[str, Any], message: str, param: str, code: str) -> None:
    with pytest.raises(ContractRefusal) as caught:
        parse_chat_request({"messages": MESSAGES} | members, Face.NATIVE)
    assert (caught.value.message, caught.value.param, caught.value.code) == (message, param, code)


@pytest.mark.parametrize("members", [{"model": "org/m:free"}, {"models": ["a", "org/m:free"]}])
def test_a_colon_makes_a_model_unknown_on_the_front(members: dict[str, Any]) -> None:
    with pytest.raises(ContractRefusal) as caught:
        parse_chat_request({"messages": MESSAGES} | members, Face.FRONT)
    refusal = caught.value
    assert (refusal.http_status, refusal.code, refusal.param) == (404, "model_not_found", None)
    assert refusal.message == "The model `org/m:free` does not exist or you do not have access to it."


def test_a_colon_is_a_character_like_any_other_on_the_native_face(parsed: Any) -> None:
    assert parsed(model="org/m:free").models == ("org/m:free",)
