"""How the processes behind one port share their figures: a folder, named before any of them counts.

Apart from `config.metrics`, for prometheus_client chooses how to count when it is imported.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's own: the folder of the counts."""


def shares_figures() -> bool:
    """Whether this process counts into a shared folder."""
    return VARIABLE in os.environ


@contextmanager
def shared_figures(processes: int) -> Iterator[None]:
    """Give several processes a folder of their own while the block runs, if the environment names none."""
    if processes == 1 or shares_figures():
        yield
        return
    folder = tempfile.mkdtemp(prefix="horde-figures-")
    os.environ[VARIABLE] = folder
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)
