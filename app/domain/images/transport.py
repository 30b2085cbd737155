"""How a job's messages and images reach its worker (ADR 0032, images I5 and I6)."""

from collections.abc import Set
from enum import StrEnum

from app.domain.declaration import Transport


class Carriage(StrEnum):
    """The four ways."""

    PLAIN = "plain"
    """Messages inline; there are no images."""

    OFFLOADED = "offloaded"
    """One signed URL in place of the messages."""

    LINKED = "linked"
    """Messages inline, one signed URL an image."""

    INLINED = "inlined"
    """Messages inline, with the bytes of their images."""


def carriage(transports: Set[str], *, offloaded: bool, has_images: bool) -> Carriage:
    """The way for this generation, from what the request stored and what the popping worker declared."""
    if offloaded and Transport.MESSAGES_URL in transports:
        return Carriage.OFFLOADED
    if not has_images:
        return Carriage.PLAIN
    return Carriage.LINKED if Transport.URL in transports else Carriage.INLINED
