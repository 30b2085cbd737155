"""What counts as one source."""

import pytest

from app.domain.addresses import source_of


@pytest.mark.parametrize(
    ("address", "source"),
    [("1.2.3.4", "1.2.3.4"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("::1", "::/64")],
)
def test_an_ipv6_source_is_its_64(address: str, source: str) -> None:
    assert source_of(address) == source
