"""The operator's line on the status page."""

import pytest

from app.domain.errors import BadRequest
from app.models.incident import LONGEST_INCIDENT
from app.services.incidents import clear_incident, current_incident, set_incident
from tests.app.services.conftest import World


def test_a_line_is_shown_until_another_takes_its_place_or_it_is_cleared(world: World) -> None:
    with world.runtime.database.transaction() as transaction:
        assert current_incident(transaction) is None
        set_incident(transaction, "The store is away.")
        shown = set_incident(transaction, " The store \n is slow. ")
        assert current_incident(transaction) == shown
        assert shown.message == "The store is slow."
        assert clear_incident(transaction)
        assert current_incident(transaction) is None
        assert not clear_incident(transaction)
    assert world.execute("SELECT count(*), count(ended_at) FROM incidents") == [(2, 2)]


@pytest.mark.parametrize("line", ["", "  ", "x" * (LONGEST_INCIDENT + 1), "a\x00b", "a\x1b[31mb"])
def test_a_line_that_cannot_be_shown_is_refused(world: World, line: str) -> None:
    with world.runtime.database.transaction() as transaction, pytest.raises(BadRequest):
        set_incident(transaction, line)
