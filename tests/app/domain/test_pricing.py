"""Amounts in millikudos, against the wire reference's own figures."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.pricing import (
    REQUEST_TAX,
    Amounts,
    Sizes,
    cancelled_amounts,
    charge,
    context_multiplier,
    kudos,
    model_multiplier,
    output_tokens,
    quote,
    reply_amounts,
    reward,
)


@pytest.mark.parametrize(
    ("characters", "max_length", "tokens"),
    [(0, 512, 20), (80, 512, 20), (81, 512, 21), (4000, 512, 512), (2048, 512, 512), (2047, 512, 512), (0, 5, 5)],
)
def test_four_characters_are_a_token_at_least_twenty_at_most_the_budget(
    characters: int, max_length: int, tokens: int
) -> None:
    assert output_tokens(characters, max_length) == tokens


@pytest.mark.parametrize(
    ("context", "multiplier"),
    [
        (20, 1.211),
        (80, 1.255),
        (256, 1.407),
        (512, 1.655),
        (1024, 2.2),
        (2048, 3.4),
        (4096, 6.04),
        (8192, 11.85),
        (16384, 24.6),
        (20_000, 30.0),
        (1_000_000, 30.0),
    ],
)
def test_the_context_multiplier_is_the_wire_references(context: int, multiplier: float) -> None:
    assert context_multiplier(context) == pytest.approx(multiplier, abs=0.03)


@pytest.mark.parametrize(("billions", "bonus"), [(8.0, 1.0), (13.0, 1.0), (24.0, 1.130), (70.0, 1.400), (123.0, 1.567)])
def test_the_model_multiplier_has_a_bonus_above_thirteen(billions: float, bonus: float) -> None:
    assert model_multiplier(billions) == pytest.approx(billions * bonus, rel=1e-3)


@pytest.mark.parametrize(
    ("tokens", "context", "billions", "millikudos"),
    [(512, 512, 8.0, 54_220), (512, 512, 70.0, 664_310), (200, 80, 8.0, 16_060), (20, 0, 1.0, 190)],
)
def test_the_reward_is_the_wire_references_to_the_hundredth(
    tokens: int, context: int, billions: float, millikudos: int
) -> None:
    assert reward(tokens, context, billions) == millikudos


def test_the_requester_pays_one_kudos_above_the_reward() -> None:
    assert charge(54_220) == 55_220


def test_the_quote_is_a_full_reply_its_fee_and_the_tax() -> None:
    assert quote(512, 512, 8.0) == 54_220 + 1000 + 1000


@pytest.mark.parametrize(("millikudos", "shown"), [(0, 0.0), (55_220, 55.22), (10, 0.01), (-1000, -1.0)])
def test_kudos_are_shown_with_at_most_two_decimals(millikudos: int, shown: float) -> None:
    assert kudos(millikudos) == shown


SIZES = st.floats(0.05, 2000)


@given(
    characters=st.integers(0, 10**7),
    context=st.integers(0, 10**7),
    max_length=st.integers(1, 10**5),
    max_context_length=st.integers(1, 10**6),
    billions=SIZES,
)
def test_no_reply_costs_more_than_its_quote(
    characters: int, context: int, max_length: int, max_context_length: int, billions: float
) -> None:
    tokens = output_tokens(characters, max_length)
    paid = charge(reward(tokens, min(context, max_context_length), billions)) + REQUEST_TAX
    assert paid <= quote(max_length, max_context_length, billions)


@given(st.integers(0, 10**5), st.integers(0, 10**6), SIZES)
def test_every_amount_is_whole_hundredths_of_a_kudos(tokens: int, context: int, billions: float) -> None:
    earned = reward(tokens, context, billions)
    assert earned >= 0
    assert earned % 10 == 0
    assert round(kudos(earned) * 1000) == earned


SIZES_8B = Sizes(max_length=512, context_tokens=512, max_context_length=8192, billions=8.0)


def test_a_reply_is_priced_by_its_characters_with_its_fee() -> None:
    assert reply_amounts(4000, SIZES_8B) == Amounts(tokens=512, charge=54_220 + 1000, reward=54_220)


def test_the_context_counts_no_more_than_was_asked_for() -> None:
    assert reply_amounts(4000, replace(SIZES_8B, context_tokens=10**6, max_context_length=512)) == reply_amounts(
        4000, SIZES_8B
    )


def test_a_cancelled_stream_is_priced_by_what_was_posted() -> None:
    assert cancelled_amounts(400, SIZES_8B) == reply_amounts(400, SIZES_8B)


def test_a_stream_cancelled_before_anything_was_posted_costs_and_earns_nothing() -> None:
    assert cancelled_amounts(0, SIZES_8B) == Amounts(tokens=0, charge=0, reward=0)


@given(
    characters=st.integers(0, 10**7),
    sizes=st.builds(Sizes, st.integers(1, 10**5), st.integers(0, 10**7), st.integers(1, 10**6), SIZES),
    dearer=st.lists(SIZES, max_size=3),
)
def test_neither_a_reply_nor_a_cancelled_stream_costs_more_than_the_dearest_quote(
    characters: int, sizes: Sizes, dearer: list[float]
) -> None:
    models = [sizes.billions, *dearer]
    most = max(quote(sizes.max_length, sizes.max_context_length, billions) for billions in models)
    for amounts in (reply_amounts(characters, sizes), cancelled_amounts(characters, sizes)):
        assert 0 <= amounts.reward <= amounts.charge
        assert amounts.charge + REQUEST_TAX <= most
