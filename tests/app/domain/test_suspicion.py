"""When a speed is not believed, how long an address is kept out, and what a network is."""

import pytest

from app.domain.name_rules import is_profane, parse_words
from app.domain.suspicion import is_implausible, is_this_machine, is_within, parse_networks, timeout_seconds


@pytest.mark.parametrize(
    ("model", "speed", "implausible"),
    [
        ("some-70B", 30.0, False),
        ("some-70B", 30.1, True),
        ("some-14B", 100.1, True),
        ("some-13B", 100.1, False),
        ("some-8B", 150.1, True),
        ("some-3B", 150.1, True),
        ("Mixtral-8x7B", 250.0, False),
        ("Mixtral-8x7B", 301.0, True),
        ("nobody-knows", 10_000.0, False),
    ],
)
def test_a_speed_is_believed_by_the_models_size(model: str, speed: float, implausible: bool) -> None:
    assert is_implausible(model, speed) is implausible


@pytest.mark.parametrize(("previous", "seconds"), [(0, 60), (1, 180), (2, 300), (1000, 3600)])
def test_a_timeout_grows_and_ends_within_the_hour(previous: int, seconds: int) -> None:
    assert timeout_seconds(previous, 60) == seconds


@pytest.mark.parametrize(
    ("address", "written", "within"),
    [
        ("192.0.2.1", "192.0.2.0/24", True),
        ("192.0.3.1", "192.0.2.0/24", False),
        ("2001:db8::1", "192.0.2.0/24, 2001:db8::/32", True),
        ("192.0.2.1", "", False),
        ("unix", "0.0.0.0/0", False),
    ],
)
def test_an_address_belongs_to_a_network(address: str, written: str, within: bool) -> None:
    assert is_within(address, parse_networks(written)) is within


@pytest.mark.parametrize(("address", "own"), [("127.0.0.1", True), ("::1", True), ("", True), ("8.8.8.8", False)])
def test_the_hordes_own_machine_is_told_apart(address: str, own: bool) -> None:
    assert is_this_machine(address) is own


@pytest.mark.parametrize(
    ("name", "profane"), [("A Bad-Word box", True), ("bad_word", True), ("badword", False), ("worse", True)]
)
def test_refused_words_are_whole_words_and_phrases(name: str, profane: bool) -> None:
    assert is_profane(name, parse_words("bad word, Worse ,,")) is profane
