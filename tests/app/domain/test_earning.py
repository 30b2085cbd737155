"""Uptime and trust, against the wire reference's sections 4.6 and 4.7."""

from datetime import timedelta

import pytest

from app.domain.earning import earns_trust, uptime_reward


@pytest.mark.parametrize(
    ("context", "models", "millikudos"),
    [
        (4096, ["some-8B"], 97_140),
        (32_768, ["some-70B"], 5_050_000),
        (4096, ["nothing-known"], 42_500),
        (0, ["tiny-0.5b"], 6_250),
        (4096, ["nothing-known", "some-8B"], 97_140),
        (262_144, ["some-7B"], 3_865_000),
        (10**7, ["some-7B"], 3_865_000),
    ],
)
def test_an_uptime_window_earns_by_the_largest_size_served(context: int, models: list[str], millikudos: int) -> None:
    assert uptime_reward(context, models) == millikudos


@pytest.mark.parametrize(
    ("escrow", "days", "suspected", "earned"),
    [(1001, 7, False, True), (1000, 7, False, False), (1001, 6, False, False), (1001, 7, True, False)],
)
def test_trust_takes_kudos_time_and_no_flag(escrow: int, days: int, suspected: bool, earned: bool) -> None:
    assert earns_trust(escrow=escrow, age=timedelta(days=days), suspected=suspected, threshold=1000) is earned
