"""What a Celery process makes once, for all its threads."""

import threading
from collections.abc import Callable
from functools import cache
from typing import TypeVar

Made = TypeVar("Made")


def once(make: Callable[[], Made]) -> Callable[[], Made]:
    """Make the thing at the first call; threads that call meanwhile wait and get the same one."""
    making, made = threading.Lock(), cache(make)

    def get() -> Made:
        with making:
            return made()

    return get
