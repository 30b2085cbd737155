"""The modes that a horde can be in (wire reference 2.8, 4.11 and 4.12)."""

from enum import StrEnum


class Mode(StrEnum):
    """A flag for the whole horde; each is off unless a moderator set it."""

    MAINTENANCE = "maintenance_mode"
    """No new requests are taken; what is queued goes on."""

    INVITE_ONLY = "invite_only_mode"
    """New workers need an owner who was invited to run them."""

    RAID = "raid_mode"
    """Nobody registers without a login, and warnings are kept from attackers."""


PUBLIC_MODES = (Mode.MAINTENANCE, Mode.INVITE_ONLY)
"""Modes that everybody may know of; the others are shown to moderators alone."""
