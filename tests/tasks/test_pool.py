"""A child of a task process that ends has a successor at once."""

import os
import time
from typing import Any

from billiard.connection import wait
from billiard.context import Process

from tasks.pool import Children


def closes_its_files_before_it_ends() -> None:
    os.closerange(3, 1024)
    time.sleep(0.3)
    os._exit(7)


class LookingOnce(Children):
    """Children of which one ends; what the pool sees of it when it looks."""

    def __init__(self, child: Process) -> None:
        self.child = child
        self.seen: list[int | None] = []

    def _untrack_child_process(self, proc: Any, hub: Any) -> None:
        """Nothing is tracked here."""

    def maintain_pool(self) -> None:
        """Note the child's end, as the pool would to replace it."""
        self.seen.append(self.child.exitcode)


def test_a_child_whose_end_shows_before_it_can_be_waited_for_is_seen_to_have_ended() -> None:
    child = Process(target=closes_its_files_before_it_ends)
    child.start()
    assert wait([child._popen.sentinel], 20)  # type: ignore[attr-defined]
    pool = LookingOnce(child)
    pool._event_process_exit(None, child)
    assert pool.seen == [7]


def test_a_child_that_was_waited_for_already_is_no_trouble() -> None:
    child = Process(target=closes_its_files_before_it_ends)
    child.start()
    child.join()
    pool = LookingOnce(child)
    pool._event_process_exit(None, child)
    assert pool.seen == [7]
