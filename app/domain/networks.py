"""A set of networks that an address is looked up in, however many they are."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Generic, TypeVar

from app.domain.addresses import source_of
from app.domain.errors import BadRequest

Network = IPv4Network | IPv6Network
Entry = TypeVar("Entry")

_LOOPBACKS = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


class NetworkTable(Generic[Entry]):
    """Networks, each with an entry. A look-up costs a step for each length of prefix that there is."""

    def __init__(self, entries: Iterable[tuple[Network, Entry]] = ()) -> None:
        self._by_size: dict[tuple[int, int], dict[int, Entry]] = {}
        for network, entry in entries:
            size = (network.version, network.max_prefixlen - network.prefixlen)
            self._by_size.setdefault(size, {})[int(network.network_address) >> size[1]] = entry

    def find(self, address: str) -> Entry | None:
        """Return the entry of a network that the address belongs to; None for what is no address."""
        if not self._by_size:
            return None
        try:
            given = ip_address(address)
        except ValueError:
            return None
        parsed = (given.ipv4_mapped if isinstance(given, IPv6Address) else None) or given
        for (version, host_bits), found in self._by_size.items():
            entry = found.get(int(parsed) >> host_bits) if version == parsed.version else None
            if entry is not None:
                return entry
        return None


def parse_network(written: str) -> Network:
    """Read an address or a network that callers can be kept out by; an IPv6 address stands for its /64 (details D9).

    Raises BadRequest for what is none, and for one that this machine itself belongs to.
    """
    try:
        named = written.strip()
        network = ip_network(named if "/" in named else source_of(named), strict=False)
    except ValueError:
        raise BadRequest("The network must be an address or a network such as 192.0.2.0/24 or 2001:db8::/48.") from None
    if any(network.version == loopback.version and network.overlaps(loopback) for loopback in _LOOPBACKS):
        raise BadRequest("This network holds the horde's own machine, which its fronts call from.")
    return network
