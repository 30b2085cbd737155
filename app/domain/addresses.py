"""What counts as one source by network address (details D9)."""

from ipaddress import IPv6Address, ip_address

IPV6_SOURCE_BITS = 64
"""One subscriber usually owns a /64."""


def source_of(address: str) -> str:
    """Return the source that an address belongs to: itself, an IPv6 one its /64.

    Raises ValueError for what is no address.
    """
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Address(int(parsed) >> IPV6_SOURCE_BITS << IPV6_SOURCE_BITS)) + f"/{IPV6_SOURCE_BITS}"
    return address
