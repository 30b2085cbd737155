"""Whose request this is, by network address (details D18, reliability B8)."""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

UNKNOWN = "0.0.0.0"  # noqa: S104 -- an address to write down, not one to listen on
"""Stands for a peer without an address, such as a Unix socket's."""


def client_address(peer: str | None, forwarded_for: Iterable[str], trusted_proxies: int) -> str:
    """The client's address.

    With `trusted_proxies` proxies in front, the last of them wrote down its own client,
    the one before it likewise: the address counted that far from the right is the
    client's, and everything left of it is the client's own invention. A value that is
    no address falls back to the peer.
    """
    own = _parsed(peer) or UNKNOWN
    if trusted_proxies == 0:
        return own
    values = [part for line in forwarded_for for part in line.split(",")]
    if len(values) < trusted_proxies:
        return own
    return _parsed(values[-trusted_proxies]) or own


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
