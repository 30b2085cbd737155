"""What keeps a horde from starting, in words for the person who started it."""


class LauncherError(Exception):
    """A horde cannot be started or stopped; the message says what to do."""
