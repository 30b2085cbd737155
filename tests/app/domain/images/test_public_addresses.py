"""Addresses that images may be fetched from (reliability D1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.images.public_addresses import is_public


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.254", "0.0.0.1", "::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a00:5", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a00:5::1",
        "2001:0:7f00:1::", "169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "10.0.0.5", "172.16.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1", "255.255.255.255", "224.0.0.1",
        "240.0.0.1", "ff02::1", "fe80::1", "fe80::1%eth0", "fec0::1", "2001:db8::1", "192.0.2.1", "203.0.113.9",
        "", "localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_a_public_address_is_taken(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4, network="10.0.0.0/8"))
def test_a_private_address_stays_private_however_it_is_wrapped(address: object) -> None:
    number = int.from_bytes(bytes(map(int, str(address).split("."))))
    high, low = number >> 16, number & 0xFFFF
    for wrapped in (f"::ffff:{address}", f"64:ff9b::{high:x}:{low:x}", f"2002:{high:x}:{low:x}::1"):
        assert not is_public(wrapped)
