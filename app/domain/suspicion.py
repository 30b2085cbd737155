"""What makes an account, a worker or an address suspicious, and what follows (wire reference 4.7, 4.11 and 4.12)."""

from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from app.domain.model_sizes import known_billions

SUSPICIOUS_FROM = 5
"""So many occasions make an account suspicious, and pause a worker."""

LONGEST_TIMEOUT_SECONDS = 3600

FASTEST = 150.0
"""Tokens per second above which no worker's speed is believed."""

_FASTEST_BY_SIZE = ((70.0, 30.0), (14.0, 100.0), (8.0, 150.0))
_MIXTURE_MARK, _MIXTURE_FACTOR = "8x", 3.0


class Suspected(StrEnum):
    """Reasons of a suspicion."""

    CORRUPT_PROMPT = "corrupt_prompt"
    UNREASONABLY_FAST = "unreasonably_fast"
    TOO_MANY_ABORTS = "too_many_aborts"


def timeout_seconds(previous: int, step: int) -> int:
    """Return how long an address is kept out after one more suspicion; `previous` are those of the last day."""
    return min((2 * previous + 1) * step, LONGEST_TIMEOUT_SECONDS)


def is_implausible(model: str, tokens_per_second: float) -> bool:
    """Whether a worker cannot really serve a model at this speed (wire reference 4.11).

    Of a model whose size nobody knows, nothing is said.
    """
    size = known_billions(model)
    if size is None:
        return False
    fastest = next((speed for billions, speed in _FASTEST_BY_SIZE if size >= billions), FASTEST)
    return tokens_per_second > fastest * (_MIXTURE_FACTOR if _MIXTURE_MARK in model.casefold() else 1.0)


Networks = tuple[IPv4Network | IPv6Network, ...]


def parse_networks(written: str) -> Networks:
    """Read networks, comma separated.

    Raises ValueError for what is no network.
    """
    return tuple(ip_network(part.strip()) for part in written.split(",") if part.strip())


def is_within(address: str, networks: Networks) -> bool:
    """Whether an address belongs to one of the networks."""
    if not networks:
        return False
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


def is_this_machine(address: str) -> bool:
    """Whether an address is the horde's own machine, or unknown: nothing follows from how many share it."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return True
