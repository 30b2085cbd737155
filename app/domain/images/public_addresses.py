"""Which addresses an image may be fetched from: public ones alone (images I3, reliability D1).

`ipaddress.is_global` is not enough: addresses that wrap another one are judged by what they
wrap, and a few that clouds use for themselves are listed.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

IpAddress = IPv4Address | IPv6Address

_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_REFUSED = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "::/96",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
    )
)


def is_public(address: str) -> bool:
    """Whether an address, as text from a resolver, may be connected to."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return all(_is_public(each) for each in (parsed, *_wrapped(parsed)))


def _is_public(address: IpAddress) -> bool:
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return isinstance(address, IPv6Address) and _is_translated(address)
    return not any(address in network for network in _REFUSED if network.version == address.version)


def _is_translated(address: IPv6Address) -> bool:
    """Whether it stands for an IPv4 address alone, which is judged in its place."""
    return address.ipv4_mapped is not None or address in _NAT64[0]


def _wrapped(address: IpAddress) -> tuple[IPv4Address, ...]:
    """IPv4 addresses that an IPv6 address leads to."""
    if isinstance(address, IPv4Address):
        return ()
    found = [each for each in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())) if each is not None]
    if any(address in network for network in _NAT64):
        found.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return tuple(found)
