"""How many SQL statements the routes take that clients poll: more than these would be a step back."""

import pytest

from app.adapters.database import STATEMENTS
from app.services.refresh_queue import refresh_queue
from tests.app.api.conftest import Call
from tests.app.services.conftest import World


@pytest.fixture(autouse=True)
def snapshots_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a process's looks at the workers and the queue for as long as a test takes."""
    monkeypatch.setattr("app.services.online.FRESH_SECONDS", 3600.0)
    monkeypatch.setattr("app.services.queue_info.FRESH_SECONDS", 3600.0)


@pytest.mark.parametrize(
    ("path", "statements"),
    [
        ("/workers?type=text", 1),
        ("/workers/name/box", 1),
        ("/status/models?type=text", 0),
        ("/status/performance", 1),
        ("/status/heartbeat", 1),
        ("/status/modes", 1),
        ("/stats/text/totals", 1),
        ("/stats/text/models", 1),
        ("/users", 2),
        ("/users/0", 1),
    ],
)
def test_a_read_takes_as_few_statements_as_it_did(world: World, get: Call, path: str, statements: int) -> None:
    for number in range(3):
        world.pop(name=f"box {number}", prompt_jobs=True)
    refresh_queue(world.runtime)
    get("/status/performance")
    get(path)
    before = STATEMENTS._value.get()
    get(path)
    assert STATEMENTS._value.get() - before == statements
