"""Whose request it is, by address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.addresses import source_of
from config.setting_types import proxies_in
from front.addresses import UNKNOWN, Network, client_address

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


NETWORKS = proxies_in("10.0.0.0/8, 192.0.2.7, fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        (PEER, ["1.1.1.1"], "1.1.1.1"),
        (PEER, ["9.9.9.9, 1.1.1.1"], "1.1.1.1"),
        (PEER, ["9.9.9.9, 1.1.1.1, 10.2.2.2, 192.0.2.7"], "1.1.1.1"),
        (PEER, ["1.1.1.1", "10.2.2.2"], "1.1.1.1"),
        (PEER, ["10.9.9.9, 10.8.8.8"], "10.9.9.9"),
        (PEER, [], PEER),
        (PEER, ["1.1.1.1, what, 10.2.2.2"], "10.2.2.2"),
        ("::ffff:10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("fd00::1", ["1.1.1.1"], "1.1.1.1"),
        ("8.8.8.8", ["1.1.1.1"], "8.8.8.8"),
        ("192.0.2.8", ["1.1.1.1"], "192.0.2.8"),
        (None, ["1.1.1.1"], UNKNOWN),
    ],
)
def test_addresses_are_read_from_the_right_through_trusted_networks(
    peer: str | None, forwarded: list[str], address: str
) -> None:
    assert client_address(peer, forwarded, NETWORKS) == address


def test_a_peer_without_an_address_is_unknown() -> None:
    assert client_address(None, [], 0) == UNKNOWN


@pytest.mark.parametrize(
    ("address", "source"),
    [("1.2.3.4", "1.2.3.4"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("::1", "::/64")],
)
def test_an_ipv6_source_is_its_64(address: str, source: str) -> None:
    assert source_of(address) == source


WRITTEN = st.text(max_size=20) | st.ip_addresses().map(str)


@given(st.lists(WRITTEN, max_size=4), st.integers(0, 4) | st.just(NETWORKS))
def test_whatever_is_forwarded_a_source_comes_out(forwarded: list[str], proxies: int | tuple[Network, ...]) -> None:
    assert source_of(client_address(PEER, forwarded, proxies))


@given(st.lists(WRITTEN, max_size=4))
def test_what_a_client_forges_left_of_its_own_address_changes_nothing(forged: list[str]) -> None:
    assert client_address(PEER, [*forged, "1.1.1.1"], NETWORKS) == "1.1.1.1"
    assert client_address(PEER, [*forged, "1.1.1.1"], 1) == "1.1.1.1"
