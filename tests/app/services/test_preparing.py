"""How long a request with images waits for a store that is away, and what it waits for next (images I1, I7)."""

import pytest

from app.domain.task_names import TaskName
from app.services.preparing import next_task, waited_for_store


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 1), (2, 3), (5, 31), (6, 61), (14, 301), (2000, 59881)])
def test_only_an_outage_uses_up_the_patience_for_the_store(failures: int, seconds: float) -> None:
    assert waited_for_store(failures) == seconds


@pytest.mark.parametrize(
    ("sources", "task"),
    [
        ([{"remote": False}], TaskName.PREPARE_IMAGES),
        ([{"remote": False}, {"remote": True}], TaskName.FETCH_IMAGES),
        ([{"remote": True, "fetched": True}, {"remote": True}], TaskName.FETCH_IMAGES),
        ([{"remote": True, "fetched": True}, {"remote": False}], TaskName.PREPARE_IMAGES),
    ],
)
def test_what_is_remote_is_fetched_before_anything_is_decoded(sources: list[dict[str, bool]], task: TaskName) -> None:
    assert next_task(sources) is task
