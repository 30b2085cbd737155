"""What the embedded services have in common."""

from typing import Protocol

from launcher.program import Program


class Service(Protocol):
    """A service that the launcher runs itself."""

    @property
    def url(self) -> str:
        """Where clients reach it."""

    def prepare(self) -> None:
        """Make its folder ready. It must not run meanwhile."""

    def program(self) -> Program:
        """How it is run."""

    def check(self) -> None:
        """Raise OSError while it does not answer."""
