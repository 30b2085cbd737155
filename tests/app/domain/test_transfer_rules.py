"""Which amounts may be given and whom a name means."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidKudosTransferAmount, InvalidTargetUsername, NegativeKudosTransfer
from app.domain.transfer_rules import target_of, transfer_amount


@pytest.mark.parametrize(
    ("amount", "millikudos"), [(100, 100_000), (100.0, 100_000), (0.01, 10), (1.1, 1100), (10**12, 10**15)]
)
def test_an_amount_is_kudos_with_at_most_two_decimals(amount: float, millikudos: int) -> None:
    assert transfer_amount(amount) == millikudos


@pytest.mark.parametrize(
    "amount",
    [0, 0.0, 0.001, 1.005, 1e-300, 10**12 + 1, 1e300, 10**40, float("inf"), float("nan"), True, "5", None, [5], {}],
)
def test_an_amount_that_is_none_is_refused(amount: object) -> None:
    with pytest.raises(InvalidKudosTransferAmount):
        transfer_amount(amount)


@pytest.mark.parametrize("amount", [-1, -0.01, -(10**40)])
def test_a_negative_amount_is_refused(amount: float) -> None:
    with pytest.raises(NegativeKudosTransfer):
        transfer_amount(amount)


@given(st.integers(1, 10**14))
def test_every_amount_of_whole_hundredths_is_kept_exactly(hundredths: int) -> None:
    assert transfer_amount(hundredths / 100) == hundredths * 10


@pytest.mark.parametrize(("name", "number"), [("Ann#42", 42), ("An#n#7", 7), ("#0", 0), ("x#1#2", 2)])
def test_the_number_after_the_last_hash_is_the_account(name: str, number: int) -> None:
    assert target_of(name) == number


def test_a_uuid_is_a_shared_key() -> None:
    shared = "4ac72a7e-5c2c-44ea-8a8a-3f5be0b2d64f"
    assert target_of(shared) == UUID(shared)


@pytest.mark.parametrize("name", ["Ann", "42", "Ann#", "Ann#4x", "Ann#²", "Ann#" + "9" * 19, "", None, 42, ["Ann#42"]])
def test_a_name_without_a_number_is_refused(name: object) -> None:
    with pytest.raises(InvalidTargetUsername):
        target_of(name)
