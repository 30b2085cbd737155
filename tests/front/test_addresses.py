"""Whose request it is, by address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.addresses import source_of
from front.addresses import UNKNOWN, client_address

PEER = "10.0.0.1"


@pytest.mark.parametrize(
    ("forwarded", "proxies", "address"),
    [
        (["1.1.1.1"], 0, PEER),
        (["1.1.1.1"], 1, "1.1.1.1"),
        (["9.9.9.9, 1.1.1.1"], 1, "1.1.1.1"),
        (["9.9.9.9, 1.1.1.1, 2.2.2.2"], 2, "1.1.1.1"),
        (["9.9.9.9", "1.1.1.1"], 2, "9.9.9.9"),
        (["1.1.1.1"], 2, PEER),
        ([], 1, PEER),
        (['"><script>'], 1, PEER),
        (["1.1.1.1:80"], 1, PEER),
        (["[2001:db8::1]"], 1, "2001:db8::1"),
        (["::ffff:1.2.3.4"], 1, "1.2.3.4"),
        (["fe80::1%eth0"], 1, "fe80::1"),
        ([""], 1, PEER),
    ],
)
def test_the_address_is_counted_from_the_right(forwarded: list[str], proxies: int, address: str) -> None:
    assert client_address(PEER, forwarded, proxies) == address


def test_a_peer_without_an_address_is_unknown() -> None:
    assert client_address(None, [], 0) == UNKNOWN


@given(st.lists(st.text(max_size=20), max_size=4), st.integers(0, 4))
def test_whatever_is_forwarded_a_source_comes_out(forwarded: list[str], proxies: int) -> None:
    assert source_of(client_address(PEER, forwarded, proxies))
