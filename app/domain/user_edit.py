"""What may be changed about an account, and by whom (wire reference 2.7)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from app.domain.errors import BadRequest, NoUserModSelected, TooLongUserName

SHORTEST_NAME, LONGEST_NAME = 3, 30
LONGEST_CONTACT, LONGEST_COMMENT = 500, 5000
MOST_CONCURRENCY = 500
MOST_INVITED = 1000


class Standing(IntEnum):
    """Who changes an account; each may do what the one before may."""

    SELF = 1
    MODERATOR = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class UserChange:
    """One change: the key on the wire, its value, and who may make it."""

    key: str
    value: Any
    needs: Standing


def parse_user_edit(body: Mapping[str, object]) -> tuple[UserChange, ...]:
    """Read the changes that a body asks for; keys that mean nothing here, and nulls, are left out.

    Raises BadRequest naming the key, TooLongUserName, or NoUserModSelected when nothing is left.
    """
    for key, why in _ELSEWHERE.items():
        if body.get(key) is not None:
            raise BadRequest(f"{key}: {why}", param=key)
    changes = tuple(
        UserChange(key, read(key, body[key]), needs)
        for key, (needs, read) in _KEYS.items()
        if body.get(key) is not None
    )
    if not changes:
        raise NoUserModSelected(f"Name what to change: {', '.join(_KEYS)}.")
    return changes


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadRequest(f"{key}: must be true or false.", param=key)
    return value


def _number(most: int) -> Callable[[str, object], int]:
    def read(key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise BadRequest(f"{key}: must be a whole number from 0 to {most}.", param=key)
        return value

    return read


def _words(most: int) -> Callable[[str, object], str]:
    def read(key: str, value: object) -> str:
        if not isinstance(value, str) or len(value) > most or not value.replace("\n", "").isprintable():
            raise BadRequest(f"{key}: must be at most {most} printable characters.", param=key)
        return value.strip()

    return read


def _name(key: str, value: object) -> str:
    name = " ".join(value.split()) if isinstance(value, str) else ""
    if len(name) > LONGEST_NAME:
        raise TooLongUserName(f"{key}: at most {LONGEST_NAME} characters.", param=key)
    if len(name) < SHORTEST_NAME or not name.isprintable() or "#" in name:
        raise BadRequest(f"{key}: {SHORTEST_NAME} to {LONGEST_NAME} printable characters, without #.", param=key)
    return name


_ELSEWHERE = {
    "usage_multiplier": "prices are the same for everybody here, so that a quote bounds its charge.",
    "kudos": "an operator grants kudos with the command 'horde kudos grant'.",
    "monthly_kudos": "there is no monthly allowance here; an operator grants kudos with 'horde kudos grant'.",
    "undelete": "a deleted account stays deleted.",
}
"""Keys of the wire reference that are not changed here, and why (ADR 0047 and 0060)."""

_KEYS: Mapping[str, tuple[Standing, Callable[[str, object], Any]]] = {
    "username": (Standing.SELF, _name),
    "contact": (Standing.SELF, _words(LONGEST_CONTACT)),
    "public_workers": (Standing.SELF, _flag),
    "concurrency": (Standing.MODERATOR, _number(MOST_CONCURRENCY)),
    "worker_invited": (Standing.MODERATOR, _number(MOST_INVITED)),
    "trusted": (Standing.MODERATOR, _flag),
    "flagged": (Standing.MODERATOR, _flag),
    "customizer": (Standing.MODERATOR, _flag),
    "vpn": (Standing.MODERATOR, _flag),
    "education": (Standing.MODERATOR, _flag),
    "special": (Standing.MODERATOR, _flag),
    "service": (Standing.MODERATOR, _flag),
    "reset_suspicion": (Standing.MODERATOR, _flag),
    "admin_comment": (Standing.MODERATOR, _words(LONGEST_COMMENT)),
    "moderator": (Standing.ADMIN, _flag),
    "generate_proxy_passkey": (Standing.SELF, _flag),
}
