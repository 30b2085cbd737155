"""The doors through which existing clients and bridges come: the front, and the native API itself."""

from collections.abc import Iterator

import pytest

from tests.support.horde import HordeProcesses
from tests.support.text_bridge import TextBridge


@pytest.fixture(params=["front", "native"])
def bridge(horde: HordeProcesses, request: pytest.FixtureRequest) -> Iterator[TextBridge]:
    """A bridge and its client at either door."""
    with TextBridge(horde, getattr(horde, request.param)) as made:
        yield made


@pytest.fixture
def browser(horde: HordeProcesses) -> Iterator[TextBridge]:
    """A client in a browser, which comes through the front alone."""
    with TextBridge(horde, horde.front) as made:
        yield made
