"""Faults are tried on the horde of the flows."""

from tests.flows.conftest import horde, running_horde

__all__ = ["horde", "running_horde"]
