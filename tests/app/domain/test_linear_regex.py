"""Patterns of strangers on texts of strangers."""

import time

import pytest

from app.domain.linear_regex import MAX_PATTERN, UnusablePattern, compiled


def test_a_pattern_is_found_anywhere() -> None:
    assert compiled("b+").found_in("aabba")
    assert not compiled("^b").found_in("ab")


def test_an_escape_of_json_schemas_dialect_names_its_character() -> None:
    assert compiled(r"^\u6f22$").found_in("漢")
    assert compiled(r"^\\u6f22$").found_in(r"\u6f22")


def test_case_may_be_ignored() -> None:
    assert compiled("bad", ignore_case=True).found_in("BaD")
    assert not compiled("bad").found_in("BAD")


def test_a_replacement_is_taken_literally() -> None:
    assert compiled("(b)").replaced("abab", r"\1\\") == r"a\1\\a\1\\"


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "(a{1000}){1000}", "a" * (MAX_PATTERN + 1), "\ud800"])
def test_a_pattern_that_the_engine_cannot_run_is_refused(pattern: str) -> None:
    with pytest.raises(UnusablePattern):
        compiled(pattern)


def test_a_catastrophic_pattern_takes_linear_time() -> None:
    started = time.monotonic()
    assert not compiled("^(a+)+$").found_in("a" * 1_000_000 + "!")
    assert time.monotonic() - started < 5
