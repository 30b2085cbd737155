"""Ids of the accounts that every horde has; the first migration creates them."""

ANONYMOUS_ID = 0
"""Requests made without an account (`Anonymous#0` on the wire)."""

ANONYMOUS_KEY = "0000000000"
"""The key that everybody knows."""

HORDE_ID = 1
"""The horde's own account: grants come from it, fees go to it."""

FLOOR_ID = 2
"""Pays what lifts an account back to its floor (details D19)."""

FIRST_USER_ID = 100
"""Ids below are kept for accounts of the system."""
