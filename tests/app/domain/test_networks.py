"""Networks that an address is looked up in, and those that nobody may be kept out by."""

from ipaddress import ip_network

import pytest

from app.domain.errors import BadRequest
from app.domain.networks import NetworkTable, parse_network

TABLE = NetworkTable(
    (ip_network(network), network)
    for network in ("192.0.2.0/24", "192.0.2.128/25", "203.0.113.7/32", "2001:db8:1::/48", "198.51.0.0/16")
)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("203.0.113.7", "203.0.113.7/32"),
        ("203.0.113.8", None),
        ("198.51.255.255", "198.51.0.0/16"),
        ("198.52.0.0", None),
        ("192.0.2.1", "192.0.2.0/24"),
        ("2001:db8:1:ffff::9", "2001:db8:1::/48"),
        ("2001:db8:2::9", None),
        ("::ffff:203.0.113.7", "203.0.113.7/32"),
        ("::c000:201", None),
        ("no address", None),
        ("", None),
    ],
)
def test_an_address_is_found_in_its_network_alone(address: str, found: str | None) -> None:
    assert TABLE.find(address) == found


def test_an_address_of_two_networks_is_found_in_one_of_them() -> None:
    assert TABLE.find("192.0.2.200") in {"192.0.2.0/24", "192.0.2.128/25"}


def test_a_table_without_networks_finds_nothing() -> None:
    assert NetworkTable().find("192.0.2.1") is None


@pytest.mark.parametrize(
    ("written", "network"),
    [
        ("192.0.2.9", "192.0.2.9/32"),
        (" 192.0.2.9/24 ", "192.0.2.0/24"),
        ("2001:DB8::1/48", "2001:db8::/48"),
        ("2001:db8::1", "2001:db8::/64"),
    ],
)
def test_an_address_or_a_network_is_read(written: str, network: str) -> None:
    assert str(parse_network(written)) == network


@pytest.mark.parametrize("written", ["", "example.org", "192.0.2.0/33", "127.0.0.1", "0.0.0.0/0", "::/0", "::1"])
def test_what_is_no_network_or_holds_this_machine_is_refused(written: str) -> None:
    with pytest.raises(BadRequest):
        parse_network(written)
