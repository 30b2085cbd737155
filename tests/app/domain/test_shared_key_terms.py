"""What may be set on a shared key."""

from datetime import timedelta

import pytest

from app.domain.errors import BadRequest
from app.domain.shared_key_terms import keys_allowed, parse_shared_key


def test_what_is_left_out_keeps_its_default() -> None:
    terms = parse_shared_key({})
    assert (terms.name("n"), terms.kudos_limit(5), terms.lifetime(), terms.max_text_tokens(9)) == ("n", 5, None, 9)


def test_what_is_given_is_taken() -> None:
    terms = parse_shared_key({"name": "for Bob", "kudos": 50.0, "expiry": 3, "max_text_tokens": 256, "unknown": 1})
    assert terms.name("n") == "for Bob"
    assert terms.kudos_limit(None) == 50_000
    assert terms.lifetime() == timedelta(days=3)
    assert terms.max_text_tokens(None) == 256


def test_minus_one_is_no_limit() -> None:
    terms = parse_shared_key({"kudos": -1, "expiry": -1, "max_text_tokens": -1})
    assert (terms.kudos_limit(5), terms.lifetime(), terms.max_text_tokens(9)) == (None, None, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "ab"),
        ("name", "x" * 256),
        ("name", 5),
        ("name", "a\nb c"),
        ("kudos", -2),
        ("kudos", 50_000_001),
        ("kudos", 1.5),
        ("kudos", True),
        ("kudos", "5"),
        ("kudos", float("nan")),
        ("expiry", 0),
        ("expiry", -2),
        ("expiry", 10**9),
        ("max_text_tokens", -2),
        ("max_image_steps", "many"),
    ],
)
def test_a_bad_value_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(BadRequest, match=key) as refused:
        parse_shared_key({key: value})
    assert refused.value.param == key


@pytest.mark.parametrize(
    ("trusted", "education", "most"), [(False, False, 3), (True, False, 10), (False, True, 1000), (True, True, 1000)]
)
def test_who_may_have_how_many_keys(trusted: bool, education: bool, most: int) -> None:
    assert keys_allowed(trusted=trusted, education=education) == most
