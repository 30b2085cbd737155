"""The horde object: its keys, their defaults and their refusals."""

from typing import Any

import pytest

from app.domain.contract import Face, HordeOptions


def wrong_type(path: str, expected: str, got: str) -> tuple[str, str, str]:
    return f"Invalid type for '{path}': expected {expected}, but got {got} instead.", path, "invalid_type"


def one_of_two(key: str, first: str, second: str) -> tuple[str, str, str]:
    return f"Invalid value: 'x'. Supported values are: '{first}' and '{second}'.", f"horde.{key}", "invalid_value"


@pytest.mark.parametrize(
    ("horde", "expected"),
    [
        ([], wrong_type("horde", "an object", "an array")),
        ({"conformance": "x"}, one_of_two("conformance", "strict", "best_effort")),
        ({"availability_mode": "x"}, one_of_two("availability_mode", "wait", "fail_fast")),
        ({"context_fit": "x"}, one_of_two("context_fit", "refuse", "truncate_oldest")),
        ({"conformance": 1}, wrong_type("horde.conformance", "a string", "an integer")),
        ({"max_kudos": "5"}, wrong_type("horde.max_kudos", "a decimal", "a string")),
        (
            {"max_kudos": -1},
            (
                "Invalid 'horde.max_kudos': decimal below minimum value. Expected a value >= 0, but got -1 instead.",
                "horde.max_kudos",
                "decimal_below_min_value",
            ),
        ),
        ({"nsfw": "yes"}, wrong_type("horde.nsfw", "a boolean", "a string")),
        ({"slow_workers": 1}, wrong_type("horde.slow_workers", "a boolean", "an integer")),
        ({"workers": "w"}, wrong_type("horde.workers", "an array of strings", "a string")),
        ({"workers": [1]}, wrong_type("horde.workers[0]", "a string", "an integer")),
        (
            {"workers": ["w"] * 6},
            (
                (
                    "Invalid 'horde.workers': array too long. Expected an array with maximum length 5, "
                    "but got an array with length 6 instead."
                ),
                "horde.workers",
                "array_above_max_length",
            ),
        ),
        (
            {"max_context_length": 0},
            (
                (
                    "Invalid 'horde.max_context_length': integer below minimum value. Expected a value >= 1, "
                    "but got 0 instead."
                ),
                "horde.max_context_length",
                "integer_below_min_value",
            ),
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_bad_option_is_refused(refused: Any, horde: object, expected: tuple[str, str, str]) -> None:
    assert refused(horde=horde) == expected


@pytest.mark.parametrize("face", list(Face))
@pytest.mark.parametrize("key", ["quantizations", "pinned_model", "zzz"])
def test_an_unknown_option_is_refused_by_name(refused: Any, face: Face, key: str) -> None:
    assert refused(face=face, horde={key: ["q4"]}) == (
        f"Unknown parameter: 'horde.{key}'.",
        f"horde.{key}",
        "UnsupportedChatParameter",
    )


def test_every_option_is_kept(parsed: Any) -> None:
    given = {
        "conformance": "best_effort",
        "availability_mode": "fail_fast",
        "max_kudos": 12.5,
        "include_reasoning": False,
        "context_fit": "truncate_oldest",
        "openai_guards": True,
        "workers": ["b", "a"],
        "worker_blacklist": True,
        "trusted_workers": True,
        "validated_workers": True,
        "slow_workers": False,
        "allow_downgrade": True,
        "nsfw": True,
        "max_context_length": 4096,
    }
    assert all(given[name] != default for name, default in HordeOptions().stored().items())
    assert parsed(horde=given).horde == HordeOptions.from_stored(given)
    assert parsed(horde=given).horde.workers == ("b", "a")


@pytest.mark.parametrize("horde", [{}, {"conformance": "strict", "slow_workers": True, "workers": []}, {"nsfw": None}])
def test_options_at_their_defaults_count_as_left_out(parsed: Any, horde: dict[str, Any]) -> None:
    assert parsed(horde=horde) == parsed()


def test_strict_is_the_default(parsed: Any) -> None:
    assert parsed().horde.strict
    assert not parsed(horde={"conformance": "best_effort"}).horde.strict
