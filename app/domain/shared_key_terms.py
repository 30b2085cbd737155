"""What an owner may set on a shared key, and how many keys it may share (wire reference 2.7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app.domain.errors import BadRequest
from app.domain.pricing import KUDOS

UNLIMITED = -1
"""On the wire: no limit, no expiry."""

DEFAULT_KUDOS = 5000
LARGEST_KUDOS = 50_000_000
LARGEST_TOKENS = 1_000_000
LONGEST_EXPIRY_DAYS = 36_500
SHORTEST_NAME, LONGEST_NAME = 3, 255

KEYS_OF_A_USER, KEYS_OF_A_TRUSTED_USER, KEYS_OF_EDUCATION = 3, 10, 1000

IMAGE_LIMITS = ("max_image_pixels", "max_image_steps")
"""Sent by clients for image hordes: no job here is an image, so they limit nothing."""


@dataclass(frozen=True, slots=True)
class SharedKeyTerms:
    """What a body sets; a field that it leaves out is absent from `given`."""

    given: Mapping[str, Any]

    def name(self, default: str) -> str:
        """The key's name."""
        return str(self.given.get("name", default))

    def kudos_limit(self, default: int | None) -> int | None:
        """What the key may spend from now on in millikudos; None for no limit."""
        if "kudos" not in self.given:
            return default
        return None if self.given["kudos"] == UNLIMITED else int(self.given["kudos"]) * KUDOS

    def lifetime(self) -> timedelta | None:
        """For how long the key is good; None for ever."""
        days = self.given.get("expiry", UNLIMITED)
        return None if days == UNLIMITED else timedelta(days=int(days))

    def max_text_tokens(self, default: int | None) -> int | None:
        """The longest reply that may be asked for with the key; None for no limit."""
        if "max_text_tokens" not in self.given:
            return default
        value = self.given["max_text_tokens"]
        return None if value == UNLIMITED else int(value)


def parse_shared_key(body: Mapping[str, object]) -> SharedKeyTerms:
    """Read a body that makes or changes a shared key. Unknown keys are ignored, as everywhere on text routes.

    Raises BadRequest that names the key.
    """
    given: dict[str, object] = {}
    if (name := body.get("name")) is not None:
        if not isinstance(name, str) or not SHORTEST_NAME <= len(name) <= LONGEST_NAME or not name.isprintable():
            raise BadRequest(f"name: must have {SHORTEST_NAME} to {LONGEST_NAME} printable characters.", param="name")
        given["name"] = name
    for key, most in (
        ("kudos", LARGEST_KUDOS),
        ("expiry", LONGEST_EXPIRY_DAYS),
        ("max_text_tokens", LARGEST_TOKENS),
        *((name, LARGEST_KUDOS) for name in IMAGE_LIMITS),
    ):
        if (value := body.get(key)) is not None:
            given[key] = _whole(key, value, most)
    if given.get("expiry") == 0:
        raise BadRequest("expiry: must be at least 1 day, or -1 for none.", param="expiry")
    return SharedKeyTerms(given)


def _whole(key: str, value: object, most: int) -> int:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is None or not UNLIMITED <= number <= most or number != int(number):
        raise BadRequest(f"{key}: must be a whole number from -1 (no limit) to {most}.", param=key)
    return int(number)


def keys_allowed(*, trusted: bool, education: bool) -> int:
    """How many shared keys an account may have at a time."""
    if education:
        return KEYS_OF_EDUCATION
    return KEYS_OF_A_TRUSTED_USER if trusted else KEYS_OF_A_USER
