"""Whose request this is, by network address (details D18, reliability B8)."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

UNKNOWN = "0.0.0.0"  # noqa: S104 -- an address to write down, not one to listen on
"""Stands for a peer without an address, such as a Unix socket's."""


Network = IPv4Network | IPv6Network


def client_address(peer: str | None, forwarded_for: Iterable[str], trusted: int | tuple[Network, ...]) -> str:
    """The client's address: the first one that nobody we trust has written down for us.

    Each proxy appends the address of its own client, so the list is read from the right.
    `trusted` is the number of proxies in front, or the networks that they are in; what stands
    left of the client's address is the client's own invention. A value that is no address ends
    the reading: the last address that was good is the client's.
    """
    own = _parsed(peer) or UNKNOWN
    values = [part for line in forwarded_for for part in line.split(",")]
    if isinstance(trusted, int):
        if trusted == 0 or len(values) < trusted:
            return own
        return _parsed(values[-trusted]) or own
    return _beyond(own, values, trusted)


def is_known_proxy(peer: str | None, trusted: int | tuple[Network, ...]) -> bool:
    """Whether `peer` is a proxy that we know by its network. A number of proxies says nothing about who they are."""
    if isinstance(trusted, int):
        return False
    own = _parsed(peer)
    return own is not None and any(ip_address(own) in network for network in trusted)


def _beyond(own: str, values: list[str], networks: tuple[Network, ...]) -> str:
    for value in reversed(values):
        if not any(ip_address(own) in network for network in networks):
            break
        written = _parsed(value)
        if written is None:
            break
        own = written
    return own


def _parsed(value: str | None) -> str | None:
    try:
        address = ip_address((value or "").strip().strip("[]"))
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        # A zone names an interface of one machine; it says nothing about the client.
        return str(mapped) if mapped else str(IPv6Address(int(address)))
    return str(address)
