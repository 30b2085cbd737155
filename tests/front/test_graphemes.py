"""Where text may be cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from front.graphemes import closed_length, cut_at
from tests.front.texts import EMOJI, texts


@given(texts(), st.integers(1, 50))
def test_a_cut_falls_between_clusters_and_takes_at_least_one(text: str, wanted: int) -> None:
    cut = cut_at(text, wanted)
    assert [*iter_graphemes(text[:cut]), *iter_graphemes(text[cut:])] == list(iter_graphemes(text))
    assert 0 < cut <= len(text) or not text
    assert cut <= wanted or len(list(iter_graphemes(text[:cut]))) == 1


@pytest.mark.parametrize("emoji", EMOJI)
def test_an_emoji_that_is_not_whole_yet_is_held_back(emoji: str) -> None:
    for length in range(1, len(emoji)):
        assert closed_length("so " + emoji[:length], keycaps=True) == 3


@pytest.mark.parametrize("text", ["plain", "漢字", "нет", "cafe\u0301", "नमस्ते", "\u0e01\u0e33", "end.\n", "1️⃣", "🇫🇷a"])
def test_text_that_no_emoji_can_go_on_from_is_not_held_back(text: str) -> None:
    assert closed_length(text, keycaps=True) == len(text)


def test_a_digit_waits_for_its_keycap_only_where_waiting_costs_nothing() -> None:
    assert closed_length("room 4", keycaps=True) == 5
    assert closed_length("room 4", keycaps=False) == 6


def test_a_damaged_end_is_held_back() -> None:
    assert closed_length("ab\ufffd", keycaps=False) == 2
    assert closed_length("", keycaps=False) == 0
